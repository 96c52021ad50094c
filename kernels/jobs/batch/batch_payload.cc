// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/batch/batch_payload.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/execution_context.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {

absl::StatusOr<size_t> BatchBytes(const BatchExtent& extent) {
  CROUT_RETURN_IF_ERROR(BatchMembersBytes(extent.members).status());
  const std::pair<int64_t, int64_t> sums[] = {{extent.total_rows, extent.max_rows},
                                              {extent.total_cols, extent.max_cols}};
  for (const auto& [total, most] : sums) {
    // All numbers of a member fit 32 bits, so the product cannot overflow.
    if (most < 0 || most > kMaxMemberOrder || total < most || total > most * extent.members) {
      return absl::InvalidArgumentError(
          absl::StrCat("the declared sizes of the batch contradict each other: largest ", most,
                       ", total ", total, ", members ", extent.members));
    }
  }
  return ByteSum().Add(BatchValuesOffset(extent.members)).Add(extent.bytes).total();
}

BatchExtent WithMaxDiagonals(BatchExtent extent) {
  const auto elements = static_cast<int64_t>(extent.bytes / SizeOf(extent.dtype));
  int64_t most = std::min(extent.max_rows, extent.max_cols);
  int64_t sum = std::min(extent.total_rows, extent.total_cols);
  // No member has more elements than the batch. Adds 1 because the root may be rounded down.
  most = std::min(most, static_cast<int64_t>(std::sqrt(static_cast<double>(elements))) + 1);
  if (int64_t{extent.max_rows} * extent.max_cols > elements) {
    // No member is both the tallest and the widest. The members other than the tallest have `rows`
    // rows in total, those other than the widest `cols` columns. Every member belongs to at least
    // one of these sets.
    const int64_t rows = extent.total_rows - extent.max_rows;
    const int64_t cols = extent.total_cols - extent.max_cols;
    most = std::min(most, std::max(rows, cols));
    sum = std::min(sum, rows + cols);
  }
  extent.max_diagonal = static_cast<int32_t>(most);
  extent.diagonals = sum;
  return extent;
}

absl::StatusOr<std::vector<MatrixShape>> ReadShapes(ExecutionContext& context,
                                                    const std::byte* block, int64_t members) {
  std::vector<MatrixShape> shapes(members);
  if (members == 0) return shapes;
  SyncOnExit sync(context);
  CROUT_RETURN_IF_ERROR(
      context.ops().CopyToHost(block, shapes.data(), shapes.size() * sizeof(MatrixShape)));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  return shapes;
}

absl::StatusOr<BatchLayout> ComputeLayout(DType dtype, const std::vector<MatrixShape>& shapes) {
  BatchLayout layout;
  layout.members.resize(shapes.size());
  CROUT_ASSIGN_OR_RETURN(layout.extent, PackMembers(dtype, shapes, layout.members));
  return layout;
}

absl::Status CheckAsDeclared(const BatchExtent& declared, const BatchExtent& arrived) {
  const std::pair<const char*, std::pair<int64_t, int64_t>> numbers[] = {
      {"max_rows", {declared.max_rows, arrived.max_rows}},
      {"max_cols", {declared.max_cols, arrived.max_cols}},
      {"total_rows", {declared.total_rows, arrived.total_rows}},
      {"total_cols", {declared.total_cols, arrived.total_cols}},
      {"bytes", {static_cast<int64_t>(declared.bytes), static_cast<int64_t>(arrived.bytes)}},
  };
  for (const auto& [name, values] : numbers) {
    if (values.first == values.second) continue;
    return absl::InvalidArgumentError(absl::StrCat("the members have ", name, " = ", values.second,
                                                   "; the header declares ", values.first));
  }
  return absl::OkStatus();
}

}  // namespace crout
