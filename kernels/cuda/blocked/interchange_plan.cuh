// What a run of interchanges amounts to, found by one block of threads.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_PLAN_CUH_
#define CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_PLAN_CUH_

#include <cstdint>

#include "kernels/cuda/blocked/interchange_rows.h"
#include "kernels/cuda/blocked/interchanges.cuh"

namespace crout::cuda {

// The rows behind those that are interchanged, each with a place of its own.
class RowsBehind {
 public:
  static constexpr int kPlaces = 2 * InterchangePlan::kMaxRows;

  // By every thread of the block; then a barrier.
  __device__ void Clear() {
    for (int i = threadIdx.x; i < kPlaces; i += blockDim.x) rows_[i] = kNone;
  }
  // The place of `row`. `first`: this call took it.
  __device__ int Take(int row, bool* first) {
    constexpr unsigned kGolden = 2654435769U;
    for (unsigned place = row * kGolden / (~0U / kPlaces + 1);; place = (place + 1) % kPlaces) {
      const int before = atomicCAS(&rows_[place], kNone, row);
      *first = before == kNone;
      if (*first || before == row) return static_cast<int>(place);
    }
  }
  __device__ int At(int place) const { return rows_[place]; }

 private:
  static constexpr int kNone = -1;

  int rows_[kPlaces];
};

// Finds the plan of ipiv[0..count), 1-based, `shift` rows above the first: ipiv[i] - 1 - shift is
// the row, from i on, that row i is interchanged with. By InterchangePlan::kMaxRows threads, one
// for each row: each warp traces 32 interchanges, and then they are applied in turn.
__device__ inline void FindInterchangePlan(const int64_t* ipiv, int64_t shift, int count,
                                           InterchangePlan* plan) {
  constexpr int kRows = InterchangePlan::kMaxRows;
  constexpr int kSlots = kRows + RowsBehind::kPlaces;
  __shared__ RowsBehind behind;
  __shared__ int source[kSlots];  // of what is in a slot: the slot where it was at first
  const auto i = static_cast<int>(threadIdx.x);
  const int chunk = i / kWarp * kWarp;
  behind.Clear();
  for (int slot = i; slot < kSlots; slot += kRows) source[slot] = slot;
  __syncthreads();
  const int other = i < count ? static_cast<int>(ipiv[i] - 1 - shift) : i;
  bool first = false;
  const int slot = i >= count || other < count ? other : kRows + behind.Take(other, &first);
  __syncthreads();
  const Moves moves = Trace(slot, chunk, kWarp);
  for (int turn = 0; turn < kRows; turn += kWarp) {
    if (turn == chunk) {
      const int of_row = source[moves.row_from];
      const int of_other = source[moves.other_from];
      __syncwarp();
      source[moves.row] = of_row;
      if (moves.other_moves) source[moves.other] = of_other;
    }
    __syncthreads();
  }
  const auto row_in = [&](int s) { return s < kRows ? s : behind.At(s - kRows); };
  plan->row_from[i] = row_in(source[i]);
  plan->other[i] = first ? other : -1;
  plan->other_from[i] = first ? row_in(source[slot]) : 0;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_PLAN_CUH_
