// SPDX-License-Identifier: Apache-2.0

// Access to the rows or columns of a sparse matrix in kernels.
#ifndef CROUT_KERNELS_CUDA_OPS_SPARSE_ROWS_CUH_
#define CROUT_KERNELS_CUDA_OPS_SPARSE_ROWS_CUH_

#include <cstdint>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// The rows of op(A), with the kernels' type T. The entries e of row i are [start[i], start[i + 1]);
// entry e is in column index[e], in ascending order.
template <class T>
struct SparseRows {
  // With kTranspose, the rows are the columns of A.
  static SparseRows ForOp(const AnySparse& a, Op op) {
    const auto view = a.As<T>();
    if (op == Op::kNone) {
      return {view.n, view.row_start, view.column, view.position, view.value, false};
    }
    return {view.n,  view.column_start, view.row,
            nullptr, view.value,        op == Op::kConjugateTranspose};
  }

  // Calls visit(k, v) for entries v in column k of row i: for every `stride`-th entry of the row
  // from its entry `first` on.
  template <class Visit>
  __device__ void ForEach(int64_t i, int first, int stride, Visit visit) const {
    const int64_t end = start[i + 1];
    for (int64_t e = start[i] + first; e < end; e += stride) {
      const T stored = value[position == nullptr ? e : position[e]];
      visit(int64_t{index[e]}, conjugate ? Conjugate(stored) : stored);
    }
  }

  int64_t n;
  const int64_t* start;
  const int32_t* index;
  const int32_t* position;  // index in `value`; null if the entries are in its order
  const T* value;
  bool conjugate;
};

// For blocks with one warp per row.
inline constexpr int kWarpsOfBlock = kBlockThreads / kWarp;
__device__ inline int64_t RowOfWarp() {
  return static_cast<int64_t>(blockIdx.x) * kWarpsOfBlock + threadIdx.x / kWarp;
}
__device__ inline int LaneOfWarp() { return static_cast<int>(threadIdx.x) % kWarp; }
// At least one block, which publishes the report.
inline unsigned BlocksOfWarps(int64_t rows) {
  return static_cast<unsigned>(rows == 0 ? 1 : (rows + kWarpsOfBlock - 1) / kWarpsOfBlock);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_SPARSE_ROWS_CUH_
