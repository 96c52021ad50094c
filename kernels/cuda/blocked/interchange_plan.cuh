// SPDX-License-Identifier: Apache-2.0

// Computes the combined permutation of a run of interchanges with one block of threads.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_PLAN_CUH_
#define CROUT_KERNELS_CUDA_BLOCKED_INTERCHANGE_PLAN_CUH_

#include <cstdint>

#include "kernels/cuda/blocked/interchange_rows.h"
#include "kernels/cuda/blocked/interchanges.cuh"

namespace crout::cuda {

// A hash table of the interchanged rows below the run.
class RowsBelowRun {
 public:
  static constexpr int kPlaces = 2 * InterchangePlan::kMaxRows;

  // Called by every thread of the block; a barrier must follow.
  __device__ void Clear() {
    for (int i = threadIdx.x; i < kPlaces; i += blockDim.x) rows_[i] = kNone;
  }
  // Returns the table index of `row`. `first`: this call inserted it.
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

// Computes the plan of ipiv[0..count), 1-based and offset by `shift` rows: row i of the run is
// interchanged with row ipiv[i] - 1 - shift, which is at or below row i. Called by
// InterchangePlan::kMaxRows threads, one per row. Each warp traces 32 interchanges; then they are
// applied in order.
__device__ inline void FindInterchangePlan(const int64_t* ipiv, int64_t shift, int count,
                                           InterchangePlan* plan) {
  constexpr int kRows = InterchangePlan::kMaxRows;
  constexpr int kSlots = kRows + RowsBelowRun::kPlaces;
  __shared__ RowsBelowRun behind;
  __shared__ int source[kSlots];  // initial slot of the content of each slot
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
