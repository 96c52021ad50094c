// SPDX-License-Identifier: Apache-2.0

#include "kernels/irregular_batch.h"

#include <cassert>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

absl::Status CheckShape(int64_t index, const MatrixShape& shape) {
  const auto [least, most] = std::minmax(shape.rows, shape.cols);
  if (least >= 0 && most <= kMaxMemberOrder) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("member ", index, " is ", shape.rows, " x ", shape.cols,
                   "; rows and columns must be from 0 to ", kMaxMemberOrder));
}

// Computes the next multiple of kMemberAlignment. Returns false on overflow.
bool AlignUp(int64_t bytes, int64_t* aligned) {
  constexpr auto kAlignment = static_cast<int64_t>(kMemberAlignment);
  if (__builtin_add_overflow(bytes, kAlignment - 1, aligned)) return false;
  *aligned -= *aligned % kAlignment;
  return true;
}

}  // namespace

absl::StatusOr<size_t> BatchMembersBytes(int64_t count) {
  if (count < 0 || count > kMaxMembers) {
    return absl::InvalidArgumentError(
        absl::StrCat("the batch has ", count, " members; the limit is ", kMaxMembers));
  }
  return static_cast<size_t>(count) * sizeof(BatchMember);
}

absl::StatusOr<BatchExtent> PackMembers(DType dtype, std::span<const MatrixShape> shapes,
                                        std::span<BatchMember> members) {
  assert(members.size() == shapes.size());
  BatchExtent extent;
  extent.dtype = dtype;
  extent.members = static_cast<int64_t>(shapes.size());
  CROUT_RETURN_IF_ERROR(BatchMembersBytes(extent.members).status());
  int64_t end = 0;  // end of the members so far, in bytes
  for (int64_t i = 0; i < extent.members; ++i) {
    const MatrixShape& shape = shapes[i];
    CROUT_RETURN_IF_ERROR(CheckShape(i, shape));
    const auto bytes = MatrixBytes(shape.rows, shape.cols, dtype);
    int64_t begin = 0;
    if (!bytes.ok() || !AlignUp(end, &begin) ||
        __builtin_add_overflow(begin, static_cast<int64_t>(*bytes), &end)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the size of members 0 to ", i, " together overflows. Send fewer or smaller members"));
    }
    members[i] = {.offset = begin / static_cast<int64_t>(SizeOf(dtype)),
                  .first_diagonal = extent.diagonals,
                  .rows = static_cast<int32_t>(shape.rows),
                  .cols = static_cast<int32_t>(shape.cols),
                  .ld = static_cast<int32_t>(std::max<int64_t>(1, shape.rows))};
    extent.max_rows = std::max(extent.max_rows, members[i].rows);
    extent.max_cols = std::max(extent.max_cols, members[i].cols);
    extent.max_diagonal = std::max(extent.max_diagonal, members[i].diagonal());
    extent.total_rows += members[i].rows;
    extent.total_cols += members[i].cols;
    extent.diagonals += members[i].diagonal();
  }
  extent.bytes = static_cast<size_t>(end);
  return extent;
}

}  // namespace crout
