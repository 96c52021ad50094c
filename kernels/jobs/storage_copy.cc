#include <cstring>
#include <span>

#include "absl/functional/function_ref.h"
#include "kernels/factorization.h"
#include "kernels/jobs/sync_on_exit.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

using Part = Buffer FactorStorage::*;
constexpr Part kFactors[] = {&FactorStorage::lu, &FactorStorage::ipiv, &FactorStorage::scales};
constexpr Part kAll[] = {&FactorStorage::lu, &FactorStorage::ipiv, &FactorStorage::scales,
                         &FactorStorage::matrix, &FactorStorage::prepared};

using EnqueueCopy = absl::FunctionRef<absl::Status(const Buffer& from, const Buffer& to)>;

absl::StatusOr<FactorStorage> CopyParts(std::span<const Part> parts, ExecutionContext& context,
                                        const FactorStorage& from, MemoryResource& memory,
                                        EnqueueCopy copy) {
  FactorStorage to;
  SyncOnExit sync(context);
  for (const Part part : parts) {
    if (!(from.*part)) continue;
    CROUT_ASSIGN_OR_RETURN(to.*part, memory.Allocate((from.*part).size()));
    CROUT_RETURN_IF_ERROR(copy(from.*part, to.*part));
  }
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  return to;
}

absl::StatusOr<FactorStorage> CopyToHost(std::span<const Part> parts, ExecutionContext& context,
                                         const FactorStorage& from, MemoryResource& to) {
  return CopyParts(parts, context, from, to, [&](const Buffer& source, const Buffer& target) {
    return context.ops().CopyToHost(source.data(), target.data(), source.size());
  });
}

}  // namespace

absl::StatusOr<FactorStorage> CopyStorageToHost(ExecutionContext& context,
                                                const FactorStorage& from, MemoryResource& to) {
  return CopyToHost(kAll, context, from, to);
}

absl::StatusOr<FactorStorage> CopyFactorsToHost(ExecutionContext& context,
                                                const FactorStorage& from, MemoryResource& to) {
  return CopyToHost(kFactors, context, from, to);
}

absl::StatusOr<FactorStorage> CopyFactorsOnHost(const FactorStorage& from, MemoryResource& to) {
  FactorStorage copy;
  for (const Part part : kFactors) {
    const Buffer& source = from.*part;
    if (!source) continue;
    CROUT_ASSIGN_OR_RETURN(copy.*part, to.Allocate(source.size()));
    std::memcpy((copy.*part).data(), source.data(), source.size());
  }
  return copy;
}

absl::StatusOr<FactorStorage> CopyStorageToDevice(ExecutionContext& context,
                                                  const FactorStorage& from) {
  return CopyParts(kAll, context, from, context.device().memory(),
                   [&](const Buffer& source, const Buffer& target) {
                     return context.ops().CopyToDevice(source.data(), target.data(), source.size());
                   });
}

}  // namespace crout
