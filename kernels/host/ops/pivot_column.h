// SPDX-License-Identifier: Apache-2.0

// Operations of Gaussian elimination with partial pivoting on one column.
#ifndef CROUT_KERNELS_HOST_OPS_PIVOT_COLUMN_H_
#define CROUT_KERNELS_HOST_OPS_PIVOT_COLUMN_H_

#include <cstdint>
#include <limits>

#include "kernels/host/ops/lanes.h"
#include "kernels/host/ops/vector_clones.h"
#include "kernels/scalar.h"

namespace crout::host {

// First of the largest elements of x[begin, end) by cabs1, ignoring NaN; `begin` if all are zero.
// This is I?AMAX as LAPACK's ?GETF2 uses it.
template <class T>
CROUT_PART_OF_CLONES int64_t PivotRow(const T* x, int64_t begin, int64_t end) {
  const auto largest =
      MaxInLanes<RealPart<T>>(end - begin, [x, begin](int64_t i) { return Abs1(x[begin + i]); });
  if (!(largest > 0)) return begin;
  int64_t row = begin;
  while (Abs1(x[row]) != largest) ++row;
  return row;
}

// x := x / pivot. Multiplies by the reciprocal if it is safely in range.
template <class T>
CROUT_PART_OF_CLONES void DivideByPivot(T* x, int64_t count, T pivot) {
  constexpr RealPart<T> kSmallest = 4 * std::numeric_limits<RealPart<T>>::min();
  const RealPart<T> size = LargestPart(pivot);
  if (size >= kSmallest && size <= 1 / kSmallest) {
    const T reciprocal = T{1} / pivot;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) x[i] *= reciprocal;
  } else {
    for (int64_t i = 0; i < count; ++i) x[i] /= pivot;
  }
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_PIVOT_COLUMN_H_
