// SPDX-License-Identifier: Apache-2.0

// Device code of the steps in echelon_panel.h.
#ifndef CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_PANEL_CUH_
#define CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_PANEL_CUH_

#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/gauss_jordan/echelon_panel.h"
#include "kernels/cuda/ops/largest_candidate.cuh"

namespace crout::cuda {

// Blocks have kThreads threads.

// Raises EchelonState::max_abs_u to `value`; NaN is the largest.
__device__ inline void IncludeInU(EchelonState& state, double value) {
  atomicMax(reinterpret_cast<unsigned long long*>(&state.max_abs_u), AbsBits(value));
}

// Runs in one block. Chooses the pivot of column j, exchanges its row in the panel and in V, and
// stores the exchanged row divided by the pivot in `pivot_row`.
template <int kThreads, class T>
__device__ void SearchPivot(const EchelonPanel<T>& panel, int64_t j) {
  auto& candidates = SharedByBlock<Candidates<kThreads>>();
  EchelonState& state = *panel.state;
  const MatrixView<T>& a = panel.a;
  const int thread = threadIdx.x;
  const bool first = j == panel.begin;
  if (first && thread == 0 && *panel.host.stop != 0) state.stopped = 1;
  const int64_t rank = state.rank;
  const int found = first ? 0 : state.found;
  double growth = 1;
  if (panel.follows_growth) {
    FindLargest(&a(0, j), 0, rank, candidates);
    growth = fmax(growth, candidates.value[0]);
    __syncthreads();
  }
  FindLargest(&a(0, j), rank, a.rows, candidates);
  if (state.stopped != 0) return;
  const bool has_pivot = candidates.value[0] > panel.tolerance * growth;
  const double candidate = candidates.value[0];
  const int64_t from = candidates.row[0];
  const T pivot = has_pivot ? a(from, j) : T{1};
  __syncthreads();  // all threads have read the pivot before any row moves
  for (int64_t i = rank + thread; !has_pivot && i < a.rows; i += kThreads) a(i, j) = T{0};
  if (has_pivot && thread < 2 * kEchelonPanel) {
    const bool in_panel = thread < kEchelonPanel;
    const int64_t column = in_panel ? panel.begin + thread : thread - kEchelonPanel;
    if (in_panel ? column >= j && column < panel.end : column <= found) {
      T* const x = in_panel ? &a(0, column) : panel.transform + column * a.rows;
      const T moved = x[rank];
      const T row = x[from];
      x[from] = moved;
      x[rank] = row;
      panel.pivot_row[thread] = (!in_panel && column == found ? T{1} : row) / pivot;
      if (in_panel) {
        IncludeInU(state, double{Abs1(row)});
      } else if (column < found) {
        panel.pivot_transforms[found * kEchelonPanel + column] = row;
      }
    }
  }
  if (thread != 0) return;
  if (first) state.base = rank;
  state.has_pivot = has_pivot ? 1 : 0;
  state.found = found + state.has_pivot;
  state.rank = rank + state.has_pivot;
  if (!has_pivot) {
    if (rank == a.rows) return;
    state.rejected = 1;
    state.largest_rejected = fmax(state.largest_rejected, candidate);
    return;
  }
  state.least_pivot = rank == 0 ? candidate : fmin(state.least_pivot, candidate);
  state.interchanges[found] = from;
  panel.pivot_columns[rank] = j;
}

// One thread per row. Eliminates column j from all rows but the pivot's, in the panel and in V.
template <int kThreads, class T>
__device__ void EliminateColumn(const EchelonPanel<T>& panel, int64_t j) {
  const EchelonState& state = *panel.state;
  const MatrixView<T>& a = panel.a;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (state.stopped != 0 || state.has_pivot == 0 || i >= a.rows) return;
  const bool is_pivot = i == state.rank - 1;
  const T multiplier = a(i, j);
  const auto eliminate = [&](T& x, T row) {
    x = is_pivot ? row : MinusProduct(x, multiplier, row);
  };
  for (int64_t k = j; k < panel.end; ++k) eliminate(a(i, k), panel.pivot_row[k - panel.begin]);
  for (int64_t k = 0; k < state.found; ++k) {
    eliminate(panel.transform[i + k * a.rows], panel.pivot_row[kEchelonPanel + k]);
  }
}

// One thread per column, from column `end` on. Moves the pivot rows and measures U.
template <int kThreads, class T>
__device__ void ExtractPivotRows(const EchelonPanel<T>& panel) {
  EchelonState& state = *panel.state;
  const int found = state.found;
  const MatrixView<T>& a = panel.a;
  const int64_t j = panel.end + static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (j >= a.cols) return;
  T* const rows = panel.rows + j * kEchelonPanel;
  for (int k = 0; k < found; ++k) {
    T& pivot = a(state.base + k, j);
    T& other = a(state.interchanges[k], j);
    const T moved = pivot;
    pivot = other;
    other = moved;
  }
  T x[kEchelonPanel];  // unrolled loops, so that it stays in registers
#pragma unroll
  for (int k = 0; k < kEchelonPanel; ++k) {
    x[k] = T{0};
    if (k < found) {
      x[k] = -a(state.base + k, j);
      a(state.base + k, j) = T{0};
    }
    rows[k] = x[k];
  }
  if (j >= panel.eligible) return;
  double largest = 0;
#pragma unroll
  for (int k = 0; k < kEchelonPanel; ++k) {
    if (k >= found) break;
    T u = x[k];
#pragma unroll
    for (int c = 0; c < k; ++c) {
      u = PlusProduct(u, panel.pivot_transforms[k * kEchelonPanel + c], x[c]);
    }
    largest = MaxKeepingNan(largest, double{Abs1(u)});
  }
  IncludeInU(state, largest);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_PANEL_CUH_
