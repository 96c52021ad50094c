// SPDX-License-Identifier: Apache-2.0

// Solves with the factors of a member of up to 32 x 32 with one warp.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_WARP_SOLVE_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_WARP_SOLVE_CUH_

#include "kernels/cuda/blocked/interchanges.cuh"
#include "kernels/cuda/irr_lu/member_update.cuh"

namespace crout::cuda {

// b := op(A)^-1 b for A of order up to kOrder. Lane i keeps row i of op(A) in registers and solves
// for unknown i, for a few right-hand sides at a time. Called by a whole warp.
template <int kOrder, class T>
__device__ void SolveByWarp(const MatrixView<const T>& lu, const int64_t* ipiv, Op op,
                            const MatrixView<T>& b) {
  constexpr int kColumnsPerPass = 4;
  const auto lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto order = static_cast<int>(lu.rows);
  const bool transposed = op != Op::kNone;
  const StridedMatrix<T> a = OpOf<T>(lu, op);
  T row[kOrder];
#pragma unroll
  for (int k = 0; k < kOrder; ++k) row[k] = lane < order && k < order ? a(lane, k) : T{0};
  const DivideBy<T> divide(lane < order ? a(lane, lane) : T{1});
  const int exchanged = Trace(ipiv, 0, 0, order).row_from;
  for (int64_t first = 0; first < b.cols; first += kColumnsPerPass) {
    T x[kColumnsPerPass];
#pragma unroll
    for (int c = 0; c < kColumnsPerPass; ++c) {
      const bool loads = lane < order && first + c < b.cols;
      x[c] = loads ? b(transposed ? lane : exchanged, first + c) : T{0};
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kOrder; ++k) {
      if (k >= order) break;
#pragma unroll
      for (int c = 0; c < kColumnsPerPass; ++c) {
        if (transposed && lane == k) x[c] = divide(x[c]);
        const T solved = Shuffle(x[c], k);
        if (lane > k) x[c] = MinusProduct(x[c], row[k], solved);
      }
    }
#pragma unroll
    for (int k = kOrder - 1; k >= 0; --k) {
      if (k >= order) continue;
#pragma unroll
      for (int c = 0; c < kColumnsPerPass; ++c) {
        if (!transposed && lane == k) x[c] = divide(x[c]);
        const T solved = Shuffle(x[c], k);
        if (lane < k) x[c] = MinusProduct(x[c], row[k], solved);
      }
    }
#pragma unroll
    for (int c = 0; c < kColumnsPerPass; ++c) {
      const bool stores = lane < order && first + c < b.cols;
      if (stores) b(transposed ? exchanged : lane, first + c) = x[c];
    }
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_WARP_SOLVE_CUH_
