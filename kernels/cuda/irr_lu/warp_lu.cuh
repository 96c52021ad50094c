// SPDX-License-Identifier: Apache-2.0

// Factors a member of up to 32 x 32 with one warp.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_WARP_LU_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_WARP_LU_CUH_

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/irr_lu/pivot.cuh"
#include "kernels/matrix.h"

namespace crout::cuda {

// Lane i keeps row i of `a` in registers; kColumns is at least a.cols. Rows do not move; a lane
// stores the final place of its row. ipiv[0, min(rows, cols)) and *info have LAPACK's format.
// `least`: the bounds of the member's pivots. Called by a whole warp.
template <int kColumns, class T>
__device__ void FactorByWarp(const MatrixView<T>& a, int64_t* ipiv, int32_t* info,
                             const MinPivots<T>& least) {
  const auto lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto rows = static_cast<int>(a.rows);
  const auto cols = static_cast<int>(a.cols);
  T row[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) row[c] = lane < rows && c < cols ? a(lane, c) : T{0};
  int place = lane < rows ? lane : -1;
  int singular = 0;
  int pivot_place = 0;  // place of the pivot row of step `lane`
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    if (k >= min(rows, cols)) break;
    PivotCandidate candidate;
    if (place >= k) candidate = {KeyOf(row[k]), place};
    const int best = __ffs(static_cast<int>(BestLane(candidate))) - 1;
    const int p = Shuffle(place, best);
    if (lane == k) pivot_place = p;
    if (place == k) {
      place = p;
    } else if (lane == best) {
      place = k;
    }
    const T pivot = PerturbPivot(Shuffle(row[k], best), least, k, lane == 0);
    if (lane == best) row[k] = pivot;
    if (pivot == T{0}) {
      if (singular == 0) singular = k + 1;
      continue;
    }
    const bool below = place > k;
    const DivideBy<T> divide(pivot);
    if (below) row[k] = divide(row[k]);
#pragma unroll
    for (int c = k + 1; c < kColumns; ++c) {
      const T u = Shuffle(row[c], best);
      if (below) row[c] = MinusProduct(row[c], row[k], u);
    }
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    if (place >= 0 && c < cols) a(place, c) = row[c];
  }
  if (lane < min(rows, cols)) ipiv[lane] = pivot_place + 1;
  if (lane == 0) *info = singular;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_WARP_LU_CUH_
