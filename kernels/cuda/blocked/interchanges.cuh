// A chunk of interchanges as what a warp's lanes move.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGES_CUH_
#define CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGES_CUH_

#include <cstdint>

#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

// What one lane moves: rows `row` and `other` come from elsewhere.
struct Moves {
  int row;
  int row_from;
  int other;
  int other_from;
  bool row_moves;
  bool other_moves;  // unless it is a row of the chunk, whose lane sees to it
};

// The interchanges of `count` rows from `first` on, row first + lane with row `other` (its own in
// lanes from `count` on): follows both rows of each back through all of them.
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

// The interchanges of the rows [first, end), at most one for each lane. ipiv[k]: 1-based, of row k,
// `shift` rows above row 0.
__device__ inline Moves Trace(const int64_t* ipiv, int64_t shift, int first, int end) {
  const int count = min(kWarp, end - first);
  const int row = first + static_cast<int>(threadIdx.x % kWarp);
  return Trace(row < first + count ? static_cast<int>(ipiv[row] - 1 - shift) : row, first, count);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGES_CUH_
