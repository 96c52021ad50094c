// SPDX-License-Identifier: Apache-2.0

// Factors a few columns with one block of threads.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_MEMBER_PANEL_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_MEMBER_PANEL_CUH_

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/irr_lu/member_team.h"
#include "kernels/cuda/irr_lu/pivot.cuh"
#include "kernels/matrix.h"

namespace crout::cuda {

// The data that warps exchange: their best pivot candidates, and those candidates' rows. In shared
// memory, double-buffered so that a column needs one barrier.
template <class T, int kThreads>
struct PanelSlots {
  static constexpr int kWarps = kThreads / kWarp;

  alignas(16) T rows[2][kWarps][MemberBlocking<T>::kPanel];
  uint64_t keys[2][kWarps];
  int places[2][kWarps];
};

// A panel during its factorization: at most kThreads * kRows rows and MemberBlocking::kPanel
// columns, and no more columns than rows. Thread t holds rows t, t + kThreads, ... in registers.
// Rows do not move; a thread stores the final place of each of its rows.
template <class T, int kThreads, int kRows>
class MemberPanel {
 public:
  // Loads `a` into the registers of the block.
  __device__ MemberPanel(const MatrixView<T>& a, PanelSlots<T, kThreads>& slots)
      : a_(a), slots_(slots) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int i = static_cast<int>(threadIdx.x) + r * kThreads;
      place_[r] = i < a.rows ? i : -1;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        values_[r][c] = i < a.rows && c < a.cols ? a(i, c) : T{0};
      }
    }
  }

  // Writes ipiv[0, columns), 1-based and counted from the row `first_row` rows above the panel's
  // first. `least`: bounds from the panel's first column on. Returns 0, or the 1-based index of the
  // first column without a pivot, the same in all threads.
  __device__ int Factor(int first_row, int64_t* ipiv, const MinPivots<T>& least) {
    int singular = 0;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      if (k >= a_.cols) break;
      const int warp = FindPivot(k);
      const T* const row = slots_.rows[k % 2][warp];
      const int p = slots_.places[k % 2][warp];
      if (threadIdx.x == 0) ipiv[k] = first_row + p + 1;
      const T pivot = PerturbPivot(row[k], least, k, threadIdx.x == 0);
      Exchange(k, p);
      if (pivot == T{0}) {
        if (singular == 0) singular = k + 1;
        continue;
      }
      const DivideBy<T> divide(pivot);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (place_[r] == k) values_[r][k] = pivot;
        if (place_[r] <= k) continue;
        const T l = values_[r][k] = divide(values_[r][k]);
#pragma unroll
        for (int c = k + 1; c < kColumns; ++c) {
          values_[r][c] = MinusProduct(values_[r][c], l, row[c]);
        }
      }
    }
    return singular;
  }

  // Stores the factored rows in `a`, each at its final place.
  __device__ void Store() const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (place_[r] < 0) continue;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if (c < a_.cols) a_(place_[r], c) = values_[r][c];
      }
    }
  }

 private:
  static constexpr int kColumns = MemberBlocking<T>::kPanel;
  static constexpr int kWarps = kThreads / kWarp;

  // Returns the warp whose slot has column k's pivot.
  __device__ int FindPivot(int k) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    PivotCandidate own;
    int own_row = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (place_[r] < k) continue;
      own.Take(KeyOf(values_[r][k]), place_[r]);
      if (own.place == place_[r]) own_row = r;
    }
    if ((BestLane(own) >> lane & 1) != 0) {
      slots_.keys[k % 2][warp] = own.key;
      slots_.places[k % 2][warp] = own.place;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        T value = values_[0][c];
#pragma unroll
        for (int r = 1; r < kRows; ++r) value = own_row == r ? values_[r][c] : value;
        slots_.rows[k % 2][warp][c] = value;
      }
    }
    __syncthreads();
    PivotCandidate of_warp;
    if (lane < kWarps) of_warp = {slots_.keys[k % 2][lane], slots_.places[k % 2][lane]};
    return __ffs(static_cast<int>(BestLane(of_warp))) - 1;
  }

  // Exchanges the places of rows k and p; their elements stay in the same registers.
  __device__ void Exchange(int k, int p) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (place_[r] == k) {
        place_[r] = p;
      } else if (place_[r] == p) {
        place_[r] = k;
      }
    }
  }

  const MatrixView<T>& a_;
  PanelSlots<T, kThreads>& slots_;
  T values_[kRows][kColumns];
  int place_[kRows];  // -1: no row
};

// Like MemberPanel, but for panels that do not fit in registers: works on `a` in memory, column by
// column. Every element is read and written once per column to its left; the same pass searches for
// the next pivot.
template <class T, int kThreads>
class ColumnPanel {
 public:
  __device__ ColumnPanel(const MatrixView<T>& a, PanelSlots<T, kThreads>& slots)
      : a_(a), slots_(slots) {}

  // Same contract as MemberPanel::Factor.
  __device__ int Factor(int first_row, int64_t* ipiv, const MinPivots<T>& least) {
    int singular = 0;
    PivotCandidate best;  // this thread's candidate in the next column
    for (int64_t i = threadIdx.x; i < a_.rows; i += kThreads) {
      best.Take(KeyOf(a_(i, 0)), static_cast<int>(i));
    }
    for (int k = 0; k < a_.cols; ++k) {
      const int p = FindPivot(k, best);
      if (threadIdx.x == 0) ipiv[k] = first_row + p + 1;
      T* const row = slots_.rows[0][k % 2];
      if (threadIdx.x < a_.cols) {
        const int c = static_cast<int>(threadIdx.x);
        row[c] = a_(p, c);
        a_(p, c) = a_(k, c);
        a_(k, c) = row[c];
      }
      __syncthreads();
      const T pivot = PerturbPivot(row[k], least, k, threadIdx.x == 0);
      if (pivot == T{0} && singular == 0) singular = k + 1;
      if (threadIdx.x == 0) a_(k, k) = pivot;
      best = Eliminate(k, pivot, row);
    }
    return singular;
  }

 private:
  static constexpr int kColumns = MemberBlocking<T>::kPanel;
  static constexpr int kWarps = kThreads / kWarp;
  static_assert(kWarps >= 2 && kThreads >= kColumns);

  // Returns the row of column k's pivot.
  __device__ int FindPivot(int k, const PivotCandidate& own) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    if ((BestLane(own) >> lane & 1) != 0) {
      slots_.keys[k % 2][warp] = own.key;
      slots_.places[k % 2][warp] = own.place;
    }
    __syncthreads();
    PivotCandidate of_warp;
    if (lane < kWarps) of_warp = {slots_.keys[k % 2][lane], slots_.places[k % 2][lane]};
    return slots_.places[k % 2][__ffs(static_cast<int>(BestLane(of_warp))) - 1];
  }

  // Subtracts row k from the rows below it, unless its pivot is zero. Returns this thread's
  // candidate in the next column.
  __device__ PivotCandidate Eliminate(int k, T pivot, const T* row) const {
    const DivideBy<T> divide(pivot);
    PivotCandidate best;
    for (int64_t i = k + 1 + threadIdx.x; i < a_.rows; i += kThreads) {
      T l{0};
      if (pivot != T{0}) l = a_(i, k) = divide(a_(i, k));
#pragma unroll
      for (int c = 1; c < kColumns; ++c) {
        if (c <= k || c >= a_.cols) continue;
        T& element = a_(i, c);
        if (pivot != T{0}) element = MinusProduct(element, l, row[c]);
        if (c == k + 1) best.Take(KeyOf(element), static_cast<int>(i));
      }
    }
    return best;
  }

  const MatrixView<T>& a_;
  PanelSlots<T, kThreads>& slots_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_MEMBER_PANEL_CUH_
