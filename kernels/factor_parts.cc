// SPDX-License-Identifier: Apache-2.0

#include "kernels/factor_parts.h"

#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
#include "kernels/device.h"
#include "kernels/execution_context.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

bool Any(const FactorPart& /*part*/) { return true; }
bool IsDownloaded(const FactorPart& part) { return part.kind == PartKind::kFactor; }

using Wanted = bool (*)(const FactorPart&);
using Copy = absl::FunctionRef<absl::Status(const Buffer& from, const Buffer& to)>;

// Adds each part to `to` before copying it, so that the destination outlives a copy in flight.
absl::Status CopyParts(const FactorParts& from, Wanted wanted, MemoryResource& memory, Copy copy,
                       FactorParts& to) {
  for (const FactorPart& part : from) {
    if (!wanted(part)) continue;
    CROUT_ASSIGN_OR_RETURN(Buffer buffer, memory.Allocate(part.buffer.size()));
    to.Add(part.name, part.kind, std::move(buffer));
    CROUT_RETURN_IF_ERROR(copy(part.buffer, to[part.name]));
  }
  return absl::OkStatus();
}

absl::StatusOr<FactorParts> Enqueue(ExecutionContext& context, const FactorParts& from,
                                    Wanted wanted, MemoryResource& memory, Copy copy) {
  if (from.is_fixed()) {
    return absl::FailedPreconditionError(
        "this factor cannot be copied: it is usable only on its device");
  }
  FactorParts to;
  SyncOnExit sync(context);
  CROUT_RETURN_IF_ERROR(CopyParts(from, wanted, memory, copy, to));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  return to;
}

absl::StatusOr<FactorParts> CopyFromDevice(ExecutionContext& context, const FactorParts& from,
                                           Wanted wanted, MemoryResource& memory) {
  return Enqueue(context, from, wanted, memory, [&](const Buffer& source, const Buffer& target) {
    return context.ops().CopyToHost(source.data(), target.data(), source.size());
  });
}

}  // namespace

Buffer FactorParts::Take(std::string_view name) {
  for (FactorPart& part : parts_) {
    if (part.name != name) continue;
    Buffer taken = std::move(part.buffer);
    parts_.erase(parts_.begin() + (&part - parts_.data()));
    return taken;
  }
  return {};
}

absl::StatusOr<FactorParts> CopyToHost(ExecutionContext& context, const FactorParts& from,
                                       MemoryResource& memory) {
  return CopyFromDevice(context, from, Any, memory);
}

absl::StatusOr<FactorParts> CopyToDevice(ExecutionContext& context, const FactorParts& from) {
  return Enqueue(context, from, Any, context.device().memory(),
                 [&](const Buffer& source, const Buffer& target) {
                   return context.ops().CopyToDevice(source.data(), target.data(), source.size());
                 });
}

absl::StatusOr<FactorParts> CopyForDownload(ExecutionContext& context, const FactorParts& from,
                                            MemoryResource& memory) {
  return CopyFromDevice(context, from, IsDownloaded, memory);
}

absl::StatusOr<FactorParts> CopyForDownload(const FactorParts& from, MemoryResource& memory) {
  FactorParts to;
  const auto copy = [](const Buffer& source, const Buffer& target) {
    std::memcpy(target.data(), source.data(), source.size());
    return absl::OkStatus();
  };
  CROUT_RETURN_IF_ERROR(CopyParts(from, IsDownloaded, memory, copy, to));
  return to;
}

}  // namespace crout
