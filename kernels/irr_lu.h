// SPDX-License-Identifier: Apache-2.0

// irr_lu: LU factorization of an irregular batch with partial pivoting. Declares its results
// besides L and U, in the same form for every device.
#ifndef CROUT_KERNELS_IRR_LU_H_
#define CROUT_KERNELS_IRR_LU_H_

#include <cstdint>

namespace crout {

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
  // PivotCondition (numerics/judgment.h), up to the range of float32; 1 for an empty member,
  // undefined if L or U contains NaN or Inf. Null if not requested.
  float* pivot_condition = nullptr;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IRR_LU_H_
