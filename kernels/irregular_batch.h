// SPDX-License-Identifier: Apache-2.0

// Irregular batches: many matrices of one element type, each with its own size.
//
// The layout follows A. Abdelfattah, P. Ghysels, W. Boukaram, S. Tomov, X. S. Li, J. Dongarra,
// "Addressing Irregular Patterns of Matrix Computations on GPUs and Their Impact on Applications
// Powered by Sparse Direct Solvers", 2022. The member sizes are an array beside the data, in the
// memory of the device; only the largest sizes are passed by value. Any mix is valid: no members,
// empty members, 1 x 1 beside thousands of rows, tall and wide.
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

// A matrix size as declared by a client; unchecked.
struct MatrixShape {
  int64_t rows = 0;
  int64_t cols = 0;
};

// Largest number of members, and of rows or columns of a member: the range of int32 and LAPACK.
inline constexpr int64_t kMaxMembers = std::numeric_limits<int32_t>::max();
inline constexpr int64_t kMaxMemberOrder = std::numeric_limits<int32_t>::max();

// Alignment of a packed member in bytes, for vector loads on GPUs. A multiple of every element
// size.
inline constexpr size_t kMemberAlignment = 16;

// The sizes of a batch that are passed by value.
struct BatchExtent {
  DType dtype = DType::kFloat64;
  int64_t members = 0;
  int32_t max_rows = 0;  // the three maxima may come from different members
  int32_t max_cols = 0;
  int32_t max_diagonal = 0;  // largest min(rows, cols)
  int64_t total_rows = 0;    // sum over all members
  int64_t total_cols = 0;
  int64_t diagonals = 0;  // sum of min(rows, cols)
  size_t bytes = 0;  // from the first element of the first member to the end of the last member
};

// A batch whose elements and `members` are in a device's memory. Owns nothing; members do not
// overlap.
struct IrregularBatch {
  std::byte* data = nullptr;  // aligned to kMemberAlignment
  BatchExtent extent;
  const BatchMember* members = nullptr;  // array of extent.members

  // Returns member i, 0-based, with elements of type T. Requires access to `members`.
  template <class T>
  MatrixView<T> Member(int64_t i) const {
    const BatchMember& member = members[i];
    return {reinterpret_cast<T*>(data) + member.offset, member.rows, member.cols, member.ld};
  }
};

// Returns the bytes of `count` BatchMembers. INVALID_ARGUMENT if count is negative or above
// kMaxMembers; call this before allocating for a declared count.
absl::StatusOr<size_t> BatchMembersBytes(int64_t count);

// Computes a packed layout for matrices of these shapes. Members follow each other in order, each
// column-major without gaps (ld = max(1, rows)) and aligned to kMemberAlignment. Fills members[i]
// from shapes[i]; both spans have the same length.
//
// INVALID_ARGUMENT, with the 0-based index of the member, if a size is negative or above
// kMaxMemberOrder, or if the total does not fit ptrdiff_t; `members` is then undefined.
absl::StatusOr<BatchExtent> PackMembers(DType dtype, std::span<const MatrixShape> shapes,
                                        std::span<BatchMember> members);

// Results of a batch factorization besides L and U, which overwrite the members. Arrays in device
// memory; owns nothing. The values for a member depend, bitwise, only on that member.
struct BatchFactors {
  // Row interchanges as in LAPACK, extent.diagonals in total. The min(rows, cols) entries of member
  // i start at its first_diagonal: for k = 1, 2, ..., row k of the member was exchanged with row
  // ipiv[k], 1-based.
  int64_t* ipiv = nullptr;
  // This array and those below have one value per member. LAPACK's info: 0, or the 1-based index of
  // the first u_kk that is exactly zero. PA = LU holds even then. If element growth makes a zero
  // pivot inconclusive (numerics/pivot_growth.h), the pivot is replaced and info is 0. The other
  // figures are then the values measured with the zero pivot.
  int32_t* info = nullptr;
  // max |u_ij| / max |a_ij|, with 0/0 = 1; +Inf if L or U contains NaN or Inf.
  double* pivot_growth = nullptr;
  // Estimate of |PA - LU|_1 / (max(rows, cols) |A|_1 eps) (numerics/factor_probe.h); 0 for an empty
  // member, +Inf if L or U contains NaN or Inf.
  double* quality = nullptr;
  // PivotCondition (numerics/accuracy_warnings.h), up to the range of float32; 1 for an empty
  // member, undefined if L or U contains NaN or Inf. Null if not requested.
  float* pivot_condition = nullptr;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IRREGULAR_BATCH_H_
