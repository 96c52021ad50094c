// irr_lu: LU factorization with partial pivoting of an irregular batch. What it leaves for solves
// and for those who want to know what it is worth, the same on every device.
#ifndef CROUT_KERNELS_IRR_LU_H_
#define CROUT_KERNELS_IRR_LU_H_

#include <cstdint>

namespace crout {

// What a factorization of a batch says of its members, beside the L and U that take the place of
// their elements. Arrays in the memory of the device; owns nothing. A member's part of each depends
// on the member alone, to the bit.
struct BatchFactors {
  // extent.diagonals interchanges, member i's min(rows, cols) from its first_diagonal on: row k of
  // the member was exchanged with row ipiv[k], 1-based, for k = 1, 2, ... in turn, as LAPACK's.
  int64_t* ipiv = nullptr;
  // The rest: one for each member. LAPACK's info: 0, or the 1-based index of the first u_kk that is
  // exactly zero. The factors are complete even then: PA = LU. Where entries grew so much that a
  // zero pivot says nothing (numerics/pivot_growth.h), it is replaced, and info is 0; the other
  // figures are those of the zero pivot.
  int32_t* info = nullptr;
  // max |u_ij| / max |a_ij|, 0/0 being 1; +Inf where L or U holds a NaN or Inf.
  double* pivot_growth = nullptr;
  // Estimate of |PA - LU|_1 / (max(rows, cols) |A|_1 eps) (numerics/factor_probe.h); 0 for an empty
  // member, +Inf where L or U holds a NaN or Inf.
  double* quality = nullptr;
  // PivotCondition (numerics/judgment.h), up to float32's range; 1 for an empty member, undefined
  // where L or U holds a NaN or Inf. Null: not asked for.
  float* pivot_condition = nullptr;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IRR_LU_H_
