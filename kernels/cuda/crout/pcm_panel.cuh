// SPDX-License-Identifier: Apache-2.0

// Device code of the panel kernels. Only pcm_panel.cu includes it.
#ifndef CROUT_KERNELS_CUDA_CROUT_PCM_PANEL_CUH_
#define CROUT_KERNELS_CUDA_CROUT_PCM_PANEL_CUH_

#include <limits>

#include "kernels/cuda/crout/pcm_panel.h"
#include "kernels/cuda/crout/pcm_panel_team.cuh"
#include "kernels/cuda/device/scalar.cuh"

namespace crout::cuda {

inline constexpr int kNowhere = std::numeric_limits<int>::max();
// Number of columns that share one copy of the code. Register arrays require compile-time indices.
inline constexpr int kStride = 8;

struct Candidate {
  unsigned long long key;
  int position;
};

// Candidate::key of an element: the bits of |x|, or of Abs1(x) for a complex x.
template <class T>
__device__ unsigned long long KeyOf(T x) {
  if constexpr (kIsComplex<T>) {
    return AbsBits(double{Abs1(x)});
  } else {
    return AbsBits(double{x});
  }
}

// The candidate with the largest key; among equal keys the first row, like LAPACK's iamax.
__device__ inline Candidate WarpBest(Candidate mine) {
  const auto high = static_cast<unsigned>(mine.key >> 32);
  const unsigned best_high = __reduce_max_sync(kAllLanes, high);
  const unsigned low = high == best_high ? static_cast<unsigned>(mine.key) : 0;
  const unsigned best_low = __reduce_max_sync(kAllLanes, low);
  const unsigned long long key = (static_cast<unsigned long long>(best_high) << 32) | best_low;
  return {key, __reduce_min_sync(kAllLanes, mine.key == key ? mine.position : kNowhere)};
}

__device__ inline bool Better(const Candidate& a, const Candidate& b) {
  return a.key > b.key || (a.key == b.key && a.position < b.position);
}

// The best candidate of a block, returned to every thread.
template <int kThreads>
__device__ Candidate BlockBest(Candidate mine) {
  __shared__ Candidate warps[kThreads / kWarp];
  const Candidate best = WarpBest(mine);
  const int lane = threadIdx.x % kWarp;
  if (lane == 0) warps[threadIdx.x / kWarp] = best;
  __syncthreads();
  return WarpBest(lane < kThreads / kWarp ? warps[lane] : Candidate{0, kNowhere});
}

struct Pivot {
  int block;
  int position;
  bool diagonal;  // the diagonal element is the pivot; no rows are interchanged
};

__device__ inline bool KeepsDiagonal(const PivotCriterion& pivoting, double diagonal,
                                     double largest) {
  switch (pivoting.rule) {
    case PivotRule::kNone:
      return true;
    case PivotRule::kPartial:
      break;
    case PivotRule::kInterval:
      return diagonal > pivoting.low && diagonal <= pivoting.high;
    case PivotRule::kThreshold:
      return diagonal > 0 && diagonal >= pivoting.threshold * largest;
  }
  return false;
}

// Runs in warp 0 of every block. All blocks read the same slots and make the same choice.
template <class Team>
__device__ Pivot ChoosePivot(Team& team, int parity, int step, const PivotCriterion& pivoting) {
  Candidate mine = {0, kNowhere};
  int mine_block = 0;
  int diagonal_block = -1;
  for (int block = threadIdx.x; block < team.size(); block += kWarp) {
    const PanelCandidate offer = team.SlotOf(parity, block).offer;
    const Candidate other = {offer.best_key, offer.best_position};
    if (Better(other, mine)) {
      mine = other;
      mine_block = block;
    }
    if (offer.diagonal_position == step) diagonal_block = block;
  }
  const Candidate best = WarpBest(mine);
  const unsigned holder = __ballot_sync(kAllLanes, mine.position == best.position);
  const int best_block = __shfl_sync(kAllLanes, mine_block, __ffs(holder) - 1);
  if (pivoting.rule == PivotRule::kPartial) return {best_block, best.position, false};
  diagonal_block = __reduce_max_sync(kAllLanes, diagonal_block);
  const double diagonal = double{Abs1(team.SlotOf(parity, diagonal_block).diagonal_row[0])};
  if (KeepsDiagonal(pivoting, diagonal, FromBits(best.key))) return {diagonal_block, step, true};
  return {best_block, best.position, false};
}

template <class T, int kWidth>
struct StepResult {
  T u[kWidth];  // u[j]: row k of U in column k + j, 0 beyond the panel; u[0] is the pivot
  int position;
};

// One row of the panel, held by one thread. Before step k, values[j] is the element in column k +
// j. A step rotates the array left and puts the finished element at the end. Steps that share a
// copy of the code rotate only the kCount elements that were not finished before these steps.
template <class T, int kWidth>
struct PanelRow {
  T values[kWidth];
  int position;  // the row's current position, counted from the panel's first row; -1: no row

  // Index of column j in `values` after the last step.
  static constexpr int Finished(int j) {
    return kWidth - (j / kStride + 1) * kStride + j % kStride;
  }
};

template <int kCount, class T, int kWidth>
__device__ void Publish(PanelSlot<T, kWidth>& slot, const PanelRow<T, kWidth>& row,
                        const Candidate& best, int step) {
  if (row.position == best.position) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) slot.best_row[j] = row.values[j];
  }
  if (row.position == step) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) slot.diagonal_row[j] = row.values[j];
    slot.offer.diagonal_position = step;
  }
  if (threadIdx.x == 0) {
    slot.offer.best_key = best.key;
    slot.offer.best_position = best.position;
  }
}

// Computes row k of U in every block. Block 0 also stores the pivot.
template <int kCount, class T, int kWidth, class Team>
__device__ void FinishPivotRow(Team& team, int parity, int step, const PcmPanel<T>& panel,
                               StepResult<T, kWidth>* result, int* first_zero) {
  const Pivot pivot = ChoosePivot(team, parity, step, panel.pivoting);
  const auto& slot = team.SlotOf(parity, pivot.block);
  const T* row = pivot.diagonal ? slot.diagonal_row : slot.best_row;
  const int lane = threadIdx.x;
  const T mine = lane < kCount ? row[lane] : T{0};
  const T l = Shuffle(mine, 0);
  const bool open = lane < kWidth - step;  // later elements are finished
  const bool divides = panel.unit_diagonal == UnitDiagonal::kU && lane != 0;
  if (lane < kCount)
    result->u[lane] = !open || (divides && l == T{0}) ? T{0} : divides ? mine / l : mine;
  if (lane != 0) return;
  result->position = pivot.position;
  if (l == T{0} && *first_zero == 0) *first_zero = step + 1;
  if (blockIdx.x == 0) panel.ipiv[panel.begin + step] = panel.begin + pivot.position + 1;
}

template <int kCount, class T, int kWidth>
__device__ void Eliminate(PanelRow<T, kWidth>& row, const StepResult<T, kWidth>& result, int step,
                          UnitDiagonal unit) {
  T l = row.values[0];
  if (unit == UnitDiagonal::kL && row.position >= step && row.position != result.position) {
    l = result.u[0] == T{0} ? T{0} : l / result.u[0];
  }
  if (row.position == result.position) {
#pragma unroll
    for (int j = 1; j < kCount; ++j) {
      row.values[j - 1] = j < kWidth - step ? result.u[j] : row.values[j];
    }
    row.position = step;
  } else {
    const T factor = row.position >= step ? l : T{0};  // a finished row is only rotated
    if (row.position == step) row.position = result.position;
#pragma unroll
    for (int j = 1; j < kCount; ++j) {
      row.values[j - 1] = MinusProduct(row.values[j], factor, result.u[j]);
    }
  }
  row.values[kCount - 1] = l;
}

template <int kCount, class T, int kWidth>
__device__ void RotateRow(PanelRow<T, kWidth>& row) {
  const T first = row.values[0];
#pragma unroll
  for (int j = 1; j < kCount; ++j) row.values[j - 1] = row.values[j];
  row.values[kCount - 1] = first;
}

// Runs steps [kFrom, kWidth) of the panel with only the registers that they still need.
template <int kFrom, int kThreads, class T, int kWidth, class Team>
__device__ void RunSteps(Team& team, PanelRow<T, kWidth>& row, const PcmPanel<T>& panel,
                         StepResult<T, kWidth>* result, int* first_zero) {
  if constexpr (kFrom < kWidth) {
    constexpr int kCount = kWidth - kFrom;
    const int width = static_cast<int>(panel.a.cols);
    if (kFrom >= width) return;
#pragma unroll 1
    for (int step = kFrom; step < kFrom + kStride; ++step) {
      if (step >= width) {
        RotateRow<kCount>(row);
        continue;
      }
      const int parity = step % 2;
      const bool open = row.position >= step;
      const Candidate best =
          BlockBest<kThreads>({open ? KeyOf(row.values[0]) : 0, open ? row.position : kNowhere});
      Publish<kCount>(team.Own(parity), row, best, step);
      team.Sync(parity, static_cast<unsigned>(2 * panel.begin + step + 1));
      if (threadIdx.x < kWarp) {
        FinishPivotRow<kCount>(team, parity, step, panel, result, first_zero);
      }
      __syncthreads();
      Eliminate<kCount>(row, *result, step, panel.unit_diagonal);
    }
    RunSteps<kFrom + kStride, kThreads>(team, row, panel, result, first_zero);
  }
}

template <class T, int kWidth, int kThreads, class Team>
__device__ void FactorPanel(Team team, const PcmPanel<T>& panel) {
  __shared__ StepResult<T, kWidth> result;
  if (panel.control->halt != 0) {  // set between kernels: all blocks read the same value
    // Kernels enqueued behind this panel may still use its pivots as row indices.
    if (blockIdx.x == 0 && threadIdx.x < panel.a.cols) {
      panel.ipiv[panel.begin + threadIdx.x] = panel.begin + threadIdx.x + 1;
    }
    return;
  }
  const bool keeper = blockIdx.x == 0 && threadIdx.x == 0;
  if (keeper && panel.host.columns != nullptr) *panel.host.columns = panel.begin;
  const uint32_t stop =
      keeper ? *panel.host.stop : 0;  // the load starts here; its value is used at the end
  const MatrixView<T>& a = panel.a;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const bool exists = index < a.rows;
  PanelRow<T, kWidth> row;
  row.position = exists ? static_cast<int>(index) : -1;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    row.values[j] = exists && j < a.cols ? a(index, j) : T{0};
  }
  if (threadIdx.x == 0) {
    team.Own(0).offer.diagonal_position = -1;
    team.Own(1).offer.diagonal_position = -1;
  }
  int first_zero = 0;
  RunSteps<0, kThreads>(team, row, panel, &result, &first_zero);
  // All blocks have read their rows: every row was needed before the last Sync().
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    if (exists && j < a.cols) a(row.position, j) = row.values[PanelRow<T, kWidth>::Finished(j)];
  }
  team.Leave();
  if (!keeper) return;
  if (first_zero != 0 && panel.control->info == 0) {
    panel.control->info = static_cast<int>(panel.begin) + first_zero;
  }
  if (stop != 0) Halt(panel.control);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_PCM_PANEL_CUH_
