// SPDX-License-Identifier: Apache-2.0

// A chunk of interchanges as the moves of a warp's lanes.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGES_CUH_
#define CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGES_CUH_

#include <cstdint>

#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

// The moves of one lane: row `row` receives row_from, and row `other` receives other_from.
struct Moves {
  int row;
  int row_from;
  int other;
  int other_from;
  bool row_moves;
  bool other_moves;  // false if `other` is a row of the chunk, which its own lane moves
};

// The combined moves of `count` interchanges. Lane l interchanges row first + l with row `other`;
// lanes from `count` on pass their own row. Traces both rows of each lane back through all
// interchanges.
__device__ inline Moves Trace(int other, int first, int count) {
  const int lane = threadIdx.x % kWarp;
  Moves moves;
  moves.row = first + lane;
  moves.other = other;
  moves.row_from = moves.row;
  moves.other_from = moves.other;
  for (int step = count - 1; step >= 0; --step) {
    const int row = first + step;
    const int with = __shfl_sync(kAllLanes, moves.other, step);
    for (int* from : {&moves.row_from, &moves.other_from}) {
      *from = *from == row ? with : *from == with ? row : *from;
    }
  }
  moves.row_moves = lane < count && moves.row_from != moves.row;
  moves.other_moves = lane < count && moves.other >= first + count;
  return moves;
}

// The moves of the interchanges of rows [first, end), at most one per lane. ipiv[k] is the 1-based
// row for row k, offset by `shift` rows.
__device__ inline Moves Trace(const int64_t* ipiv, int64_t shift, int first, int end) {
  const int count = min(kWarp, end - first);
  const int row = first + static_cast<int>(threadIdx.x % kWarp);
  return Trace(row < first + count ? static_cast<int>(ipiv[row] - 1 - shift) : row, first, count);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGES_CUH_
