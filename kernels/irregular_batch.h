// Irregular batches: many matrices of one element type, each of a size of its own.
//
// As in A. Abdelfattah, P. Ghysels, W. Boukaram, S. Tomov, X. S. Li, J. Dongarra, "Addressing
// Irregular Patterns of Matrix Computations on GPUs and Their Impact on Applications Powered by
// Sparse Direct Solvers", 2022, the sizes of the members are an array beside the data, in the
// memory of the device that works on them, and only the largest sizes are passed by value. Any mix
// is a batch: no member, empty members, 1 x 1 beside thousands, tall and wide ones.
#ifndef CROUT_KERNELS_IRREGULAR_BATCH_H_
#define CROUT_KERNELS_IRREGULAR_BATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/batch_member.h"
#include "kernels/matrix.h"

namespace crout {

// A matrix's size as someone declared it: unchecked.
struct MatrixShape {
  int64_t rows = 0;
  int64_t cols = 0;
};

// Most members of a batch, and most rows or columns of a member: what fits 32 bits, LAPACK's too.
inline constexpr int64_t kMaxMembers = std::numeric_limits<int32_t>::max();
inline constexpr int64_t kMaxMemberOrder = std::numeric_limits<int32_t>::max();

// A packed member begins at a multiple of so many bytes, as loads of vectors on GPUs ask for; a
// multiple of every element's size.
inline constexpr size_t kMemberAlignment = 16;

// The sizes of a batch that are passed by value.
struct BatchExtent {
  DType dtype = DType::kFloat64;
  int64_t members = 0;
  int32_t max_rows = 0;  // of any member, as are the next two: not all of the same one
  int32_t max_cols = 0;
  int32_t max_diagonal = 0;  // of min(rows, cols)
  int64_t total_rows = 0;    // of all members together
  int64_t total_cols = 0;
  int64_t diagonals = 0;  // sum of min(rows, cols)
  size_t bytes = 0;       // from the first member's first element to the end of the last member
};

// A batch in a device's memory, both the elements and `members`. Owns nothing; the members do not
// overlap.
struct IrregularBatch {
  std::byte* data = nullptr;  // aligned to kMemberAlignment
  BatchExtent extent;
  const BatchMember* members = nullptr;  // extent.members of them

  // Member i, 0-based, whose elements are of type T. For code that may read `members`.
  template <class T>
  MatrixView<T> Member(int64_t i) const {
    const BatchMember& member = members[i];
    return {reinterpret_cast<T*>(data) + member.offset, member.rows, member.cols, member.ld};
  }
};

// Bytes of `count` BatchMembers. INVALID_ARGUMENT for a negative count or one beyond kMaxMembers:
// ask before memory is taken for a declared count.
absl::StatusOr<size_t> BatchMembersBytes(int64_t count);

// Lays matrices of these shapes out packed: one after the other, by columns, without gaps between
// columns (ld = max(1, rows)), each from the next multiple of kMemberAlignment on. members[i] gets
// the place of shapes[i]; there are as many of both. INVALID_ARGUMENT, naming the member by its
// 0-based index, for a size that is negative or beyond kMaxMemberOrder, and for a batch whose bytes
// do not fit ptrdiff_t; `members` is undefined then.
absl::StatusOr<BatchExtent> PackMembers(DType dtype, std::span<const MatrixShape> shapes,
                                        std::span<BatchMember> members);

}  // namespace crout

#endif  // CROUT_KERNELS_IRREGULAR_BATCH_H_
