// SPDX-License-Identifier: Apache-2.0

// Factors a few columns of any length with one block of threads.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_COLUMN_PANEL_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_COLUMN_PANEL_CUH_

#include "kernels/cuda/irr_lu/member_panel.cuh"

namespace crout::cuda {

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

#endif  // CROUT_KERNELS_CUDA_IRR_LU_COLUMN_PANEL_CUH_
