// The lines of a sparse matrix as kernels read them.
#ifndef CROUT_KERNELS_CUDA_OPS_SPARSE_ROWS_CUH_
#define CROUT_KERNELS_CUDA_OPS_SPARSE_ROWS_CUH_

#include <cstdint>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// The rows of op(A), T as kernels have it. Entry e of row i is in column index[e], for e in
// [start[i], start[i + 1]), ascending.
template <class T>
struct SparseRows {
  // op: kTranspose for the columns of A as they are.
  static SparseRows Of(const AnySparse& a, Op op) {
    const auto view = a.As<T>();
    if (op == Op::kNone) {
      return {view.n, view.row_start, view.column, view.position, view.value, false};
    }
    return {view.n,  view.column_start, view.row,
            nullptr, view.value,        op == Op::kConjugateTranspose};
  }

  // visit(k, v) for entries v in column k of row i: from the row's entry `first` on every
  // `stride`-th.
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
  const int32_t* position;  // in `value`; null where the entries are in its order
  const T* value;
  bool conjugate;
};

// Of blocks with a warp for each row.
inline constexpr int kWarpsOfBlock = kBlockThreads / kWarp;
__device__ inline int64_t RowOfWarp() {
  return static_cast<int64_t>(blockIdx.x) * kWarpsOfBlock + threadIdx.x / kWarp;
}
__device__ inline int LaneOfWarp() { return static_cast<int>(threadIdx.x) % kWarp; }
// At least one: it publishes what the blocks found.
inline unsigned BlocksOfWarps(int64_t rows) {
  return static_cast<unsigned>(rows == 0 ? 1 : (rows + kWarpsOfBlock - 1) / kWarpsOfBlock);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_SPARSE_ROWS_CUH_
