// SPDX-License-Identifier: Apache-2.0

// Warm start of the iterative Crout method on the host.
#ifndef CROUT_KERNELS_HOST_ICM_ICM_START_H_
#define CROUT_KERNELS_HOST_ICM_ICM_START_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/host/device/parallel_for.h"
#include "kernels/lu_parameters.h"

namespace crout::host {

// out := the factor in `start`, rescaled to the unit diagonal in U. If the unit diagonal is in L
// and D is the diagonal of U, the result is L D and D^-1 U. A row of U with d_ii = 0 is not scaled:
// any estimate is valid.
template <class T>
void FillEstimate(int cores, const FactorView& start, const MatrixView<T>& out) {
  const MatrixView<T> lu = start.lu.As<T>();
  const bool rescale = start.unit_diagonal == UnitDiagonal::kL;
  ParallelFor(cores, lu.cols, [&](int64_t j) {
    for (int64_t i = 0; i < lu.rows; ++i) {
      T value = lu(i, j);
      if (rescale && i > j) value *= lu(j, j);
      if (rescale && i < j && lu(i, i) != T{0}) value /= lu(i, i);
      out(i, j) = value;
    }
  });
}

// out(i, j) := a(p[i], j).
template <class T>
void CopyPermuted(int cores, const MatrixView<T>& a, const std::vector<int64_t>& p,
                  const MatrixView<T>& out) {
  ParallelFor(cores, a.cols, [&](int64_t j) {
    const T* column = &a(0, j);
    std::transform(p.begin(), p.end(), &out(0, j), [column](int64_t i) { return column[i]; });
  });
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_ICM_ICM_START_H_
