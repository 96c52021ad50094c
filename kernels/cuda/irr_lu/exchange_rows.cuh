// SPDX-License-Identifier: Apache-2.0

// Exchanges rows in a few columns with one block of threads.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_EXCHANGE_ROWS_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_EXCHANGE_ROWS_CUH_

#include "kernels/cuda/blocked/interchanges.cuh"
#include "kernels/matrix.h"

namespace crout::cuda {

// Exchanges rows in columns [first, first + count) of `a` by this lane's `moves`, or undoes them
// with kInverse. Called by all threads of a block; each warp handles one column at a time.
template <bool kInverse, class T>
__device__ void ExchangeRows(const MatrixView<T>& a, int first, int count, const Moves& moves) {
  constexpr int kUnroll = 4;  // loads in flight
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int row = kInverse ? moves.row_from : moves.row;
  const int row_from = kInverse ? moves.row : moves.row_from;
  const int other = kInverse ? moves.other_from : moves.other;
  const int other_from = kInverse ? moves.other : moves.other_from;
  for (int begin = warp; begin < count; begin += kUnroll * warps) {
    T of_row[kUnroll];
    T of_other[kUnroll];
#pragma unroll
    for (int c = 0; c < kUnroll; ++c) {
      if (begin + c * warps >= count) break;
      const T* const column = &a(0, first + begin + c * warps);
      if (moves.row_moves) of_row[c] = column[row_from];
      if (moves.other_moves) of_other[c] = column[other_from];
    }
    __syncwarp();
#pragma unroll
    for (int c = 0; c < kUnroll; ++c) {
      if (begin + c * warps >= count) break;
      T* const column = &a(0, first + begin + c * warps);
      if (moves.row_moves) column[row] = of_row[c];
      if (moves.other_moves) column[other] = of_other[c];
    }
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_EXCHANGE_ROWS_CUH_
