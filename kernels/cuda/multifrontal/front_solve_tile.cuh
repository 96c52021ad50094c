// SPDX-License-Identifier: Apache-2.0

// Triangular solves with one tile of a front in shared memory.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_TILE_CUH_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_TILE_CUH_

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/irr_lu/pivot.cuh"
#include "kernels/cuda/multifrontal/front_solve.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace front_solve {

inline constexpr int kStepThreads = 128;
inline constexpr int kStepWarps = kStepThreads / kWarp;

// The order of the diagonal blocks that are inverted in a step's triangle.
inline constexpr int kInverted = kWarp / 2;

// The largest accepted column sum of moduli of a block to be inverted and of its inverse. The
// condition number is then at most the square of this bound. |b - S fl(S^-1 b)| is at most a few u
// |S| |S^-1| |b| (Higham, Accuracy and Stability of Numerical Algorithms, 14.1). So the normwise
// backward error of a product with the inverse grows with the condition, while that of substitution
// does not. The componentwise backward error may be large if the solution's elements differ greatly
// in size; refinement corrects it.
inline constexpr int kMaxColumnSum = 6;

template <class T, int kColumns>
struct StepShared {
  // The step's rows and columns of op(F11), one triangle of which is used: [column][row]. Zero
  // outside of them. InvertBlock replaces the diagonal blocks that `inverted` marks.
  T tile[kSolveTile<T>][kSolveTile<T> + 1];
  DivideBy<T> diagonal[kSolveTile<T>];
  bool inverted[kSolveTile<T> / kInverted];
  T x[kSolveTile<T>][kColumns];
};

// Replaces the diagonal block from `first` on by its inverse, so that a product replaces a chain of
// dependent steps. For a block with a non-unit diagonal D, inverts S := block times D^-1, so that
// no reciprocal of a tiny or huge pivot enters. If a column sum of S or of the inverse exceeds
// kMaxColumnSum, leaves the block unmodified and returns false. kForward: the block is lower
// triangular. Called by a warp; each lane handles one column.
template <bool kForward, bool kUnit, class T, int kColumns>
__device__ bool InvertBlock(int first, StepShared<T, kColumns>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  T column[kInverted];
#pragma unroll
  for (int i = 0; i < kInverted; ++i) column[i] = i == lane ? T{1} : T{0};
#pragma unroll
  for (int s = 0; s < kInverted; ++s) {
    const int k = kForward ? s : kInverted - 1 - s;
    const T of_k = kUnit ? column[k] : shared.diagonal[first + k](column[k]);
#pragma unroll
    for (int i = kForward ? k + 1 : 0; i < (kForward ? kInverted : k); ++i) {
      column[i] = MinusProduct(column[i], shared.tile[first + k][first + i], of_k);
    }
  }
  // Both halves of the warp check the same columns of S. The unused lanes' columns of the inverse
  // are 0.
  const int own = first + lane % kInverted;
  RealPart<T> of_block{0};
  RealPart<T> of_inverse{0};
#pragma unroll
  for (int i = 0; i < kInverted; ++i) {
    const bool takes = kForward ? first + i > own : first + i < own;
    if (takes) of_block += Abs1(shared.tile[own][first + i]);
    of_inverse += Abs1(column[i]);
  }
  if constexpr (!kUnit) of_block = Abs1(shared.diagonal[own](T{of_block}));
  // False for NaN.
  const bool small = of_block <= kMaxColumnSum - 1 && of_inverse <= kMaxColumnSum;
  if (__ballot_sync(kAllLanes, small) != kAllLanes) return false;
  if (lane < kInverted) {
#pragma unroll
    for (int i = 0; i < kInverted; ++i) shared.tile[first + lane][first + i] = column[i];
  }
  return true;
}

// Inverts the diagonal blocks that allow it, one warp each. Called by all threads of a block. The
// tile must be complete before the call; the results are visible after the next __syncthreads().
template <bool kForward, bool kUnit, class T, int kColumns>
__device__ void InvertTile(int width, StepShared<T, kColumns>& shared) {
  static_assert(kSolveTile<T> / kInverted <= kStepWarps);
  const int block = static_cast<int>(threadIdx.x) / kWarp;
  if (block * kInverted >= width) return;
  const bool inverted = InvertBlock<kForward, kUnit>(block * kInverted, shared);
  if (threadIdx.x % kWarp == 0) shared.inverted[block] = inverted;
}

// sums := row `row` of the tile's columns [from, from + kTerms), times the same rows of x.
template <int kTerms, int kEach, class T, int kColumns>
__device__ void MultiplyRow(const StepShared<T, kColumns>& shared, int row, int from,
                            int first_column, T (&sums)[kEach]) {
#pragma unroll
  for (int c = 0; c < kEach; ++c) sums[c] = T{0};
#pragma unroll
  for (int k = from; k < from + kTerms; ++k) {
    const T factor = shared.tile[k][row];
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
      sums[c] = PlusProduct(sums[c], factor, shared.x[k][first_column + c]);
    }
  }
}

// x := the inverted block from `first` on times x, for kEach columns. Two lanes share a row. Called
// by a warp.
template <bool kUnit, int kEach, class T, int kColumns>
__device__ void MultiplyBlock(int first, int first_column, StepShared<T, kColumns>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = first + lane % kInverted;
  constexpr int kTerms = kInverted / 2;
  T sums[kEach];
  MultiplyRow<kTerms>(shared, row, first + lane / kInverted * kTerms, first_column, sums);
#pragma unroll
  for (int c = 0; c < kEach; ++c) sums[c] = sums[c] + ShuffleXor(sums[c], kInverted);
  __syncwarp();
  if (lane < kInverted) {
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
      shared.x[row][first_column + c] = kUnit ? sums[c] : shared.diagonal[row](sums[c]);
    }
  }
  __syncwarp();
}

// The same for a block that is not inverted. Both halves of the warp compute the same.
template <bool kForward, bool kUnit, int kEach, class T, int kColumns>
__device__ void SubstituteBlock(int first, int first_column, StepShared<T, kColumns>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int i = lane % kInverted;
  T own[kEach];
#pragma unroll
  for (int c = 0; c < kEach; ++c) own[c] = shared.x[first + i][first_column + c];
#pragma unroll 4
  for (int s = 0; s < kInverted; ++s) {
    const int k = kForward ? s : kInverted - 1 - s;
    const T factor = (kForward ? i > k : i < k) ? shared.tile[first + k][first + i] : T{0};
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
      T of_k = Shuffle(own[c], k);
      if constexpr (!kUnit) {
        of_k = shared.diagonal[first + k](of_k);
        if (i == k) own[c] = of_k;
      }
      own[c] = MinusProduct(own[c], factor, of_k);
    }
  }
  __syncwarp();
  if (lane < kInverted) {
#pragma unroll
    for (int c = 0; c < kEach; ++c) shared.x[first + i][first_column + c] = own[c];
  }
  __syncwarp();
}

// Solves op(T) x = b for the tile, in the state in which InvertTile left it, and the columns in
// shared memory. kForward: op(T) is lower triangular. Called by all threads of a block; each warp
// handles a quarter of the columns.
template <bool kForward, bool kUnit, class T, int kColumns>
__device__ void SolveTile(int width, int columns, StepShared<T, kColumns>& shared) {
  constexpr int kTile = kSolveTile<T>;
  constexpr int kBlocks = kTile / kInverted;
  constexpr int kEach = (kColumns + kStepWarps - 1) / kStepWarps;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int first_column = static_cast<int>(threadIdx.x) / kWarp * kEach;
  if (first_column >= columns) return;
#pragma unroll 1  // saves registers
  for (int s = 0; s < kBlocks; ++s) {
    const int block = kForward ? s : kBlocks - 1 - s;
    const int first = block * kInverted;
    if (first >= width) continue;
    if (shared.inverted[block]) {
      MultiplyBlock<kUnit, kEach>(first, first_column, shared);
    } else {
      SubstituteBlock<kForward, kUnit, kEach>(first, first_column, shared);
    }
    // Subtract the product from the rows that follow.
#pragma unroll
    for (int r = 0; r < kTile; r += kWarp) {
      if (kForward ? r + kWarp <= first + kInverted : r >= first) continue;
      const int i = r + lane;
      T sums[kEach];
      MultiplyRow<kInverted>(shared, i, first, first_column, sums);
      if (kForward ? i < first + kInverted : i >= first) continue;
#pragma unroll
      for (int c = 0; c < kEach; ++c) {
        T& to = shared.x[i][first_column + c];
        to = to - sums[c];
      }
    }
    __syncwarp();
  }
}

}  // namespace front_solve
}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_TILE_CUH_
