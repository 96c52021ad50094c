// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/batch/batch_download.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/execution_context.h"
#include "kernels/factorization.h"
#include "kernels/jobs/batch/batch_factorize.h"
#include "kernels/jobs/batch/batch_payload.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/size_class.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

size_t Aligned(size_t bytes) {
  return (bytes + kMemberAlignment - 1) / kMemberAlignment * kMemberAlignment;
}

// Enqueues the copy on the context's device. Without a context, copies at once.
absl::Status CopyOut(ExecutionContext* context, const void* from, void* to, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (context != nullptr) return context->ops().CopyToHost(from, to, bytes);
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status Await(ExecutionContext* context) {
  return context == nullptr ? absl::OkStatus() : context->Synchronize();
}

}  // namespace

absl::StatusOr<size_t> BatchDownloadBytes(const BatchExtent& factor, const MemberRange& range) {
  // Upper bound of a member's bytes: its values, aligned to kMemberAlignment.
  CROUT_ASSIGN_OR_RETURN(const size_t largest,
                         MatrixBytes(factor.max_rows, factor.max_cols, factor.dtype));
  const auto count = static_cast<size_t>(range.count);
  const size_t by_members = count > 0 && Aligned(largest) > factor.bytes / count
                                ? factor.bytes
                                : count * Aligned(largest);
  const auto diagonals =
      static_cast<size_t>(std::min(factor.diagonals, range.count * int64_t{factor.max_diagonal}));
  const size_t layout = BatchLayoutBytes(range.count) + count * sizeof(BatchMember);
  return BlockBytes(BatchValuesOffset(range.count) + by_members + kMemberAlignment +
                    diagonals * sizeof(int32_t)) +
         BlockBytes(layout + diagonals * sizeof(int64_t));
}

absl::StatusOr<BatchDownload> DownloadMembers(ExecutionContext* context, const FactorParts& parts,
                                              const BatchExtent& factor, const MemberRange& range,
                                              MemoryResource& memory) {
  BatchDownload download;
  download.extent.dtype = factor.dtype;
  if (range.count == 0) return download;
  std::vector<BatchMember> members(range.count);
  std::vector<int64_t> interchanges;
  std::optional<SyncOnExit> sync;
  if (context != nullptr) sync.emplace(*context);
  CROUT_RETURN_IF_ERROR(CopyOut(context, parts[kMembersPart].as<BatchMember>() + range.first,
                                members.data(), members.size() * sizeof(BatchMember)));
  CROUT_RETURN_IF_ERROR(Await(context));
  std::vector<MatrixShape> shapes;
  shapes.reserve(members.size());
  for (const BatchMember& member : members) shapes.push_back({member.rows, member.cols});
  CROUT_ASSIGN_OR_RETURN(const BatchLayout layout, ComputeLayout(factor.dtype, shapes));
  download.extent = layout.extent;
  const size_t values_at = BatchValuesOffset(range.count);
  const size_t end = values_at + layout.extent.bytes;
  const size_t pivots_at = Aligned(end);
  interchanges.resize(layout.extent.diagonals);
  CROUT_ASSIGN_OR_RETURN(download.bytes,
                         memory.Allocate(pivots_at + interchanges.size() * sizeof(int32_t)));
  std::byte* const out = download.bytes.data();
  std::memcpy(out, shapes.data(), values_at);
  std::memset(out + end, 0, pivots_at - end);
  // Members of a range have the same relative layout as if packed alone; only the start differs.
  const std::byte* const lu = parts[kLuPart].data() + BatchValuesOffset(factor.members) +
                              static_cast<size_t>(members[0].offset) * SizeOf(factor.dtype);
  CROUT_RETURN_IF_ERROR(CopyOut(context, lu, out + values_at, layout.extent.bytes));
  CROUT_RETURN_IF_ERROR(CopyOut(context, parts[kIpivPart].as<int64_t>() + members[0].first_diagonal,
                                interchanges.data(), interchanges.size() * sizeof(int64_t)));
  CROUT_RETURN_IF_ERROR(Await(context));
  if (sync) sync->Dismiss();
  std::transform(interchanges.begin(), interchanges.end(),
                 reinterpret_cast<int32_t*>(out + pivots_at),
                 [](int64_t row) { return static_cast<int32_t>(row); });
  return download;
}

size_t BatchFiguresBytes(int64_t members) {
  return BlockBytes(BatchFigures::kSentBytesPerMember * static_cast<size_t>(members));
}

absl::StatusOr<Buffer> DownloadFigures(ExecutionContext* context, const FactorParts& parts,
                                       int64_t members, MemoryResource& memory) {
  const size_t bytes = BatchFigures::kSentBytesPerMember * static_cast<size_t>(members);
  if (bytes == 0) return Buffer();
  CROUT_ASSIGN_OR_RETURN(Buffer figures, memory.Allocate(bytes));
  CROUT_RETURN_IF_ERROR(CopyOut(context, parts[kFiguresPart].data(), figures.data(), bytes));
  CROUT_RETURN_IF_ERROR(Await(context));
  return figures;
}

}  // namespace crout
