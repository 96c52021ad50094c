// SPDX-License-Identifier: Apache-2.0

// Kernels that start a front of a solve: on the way up with its children's results, on the way down
// with its parent's.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_START_CUH_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_START_CUH_

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/multifrontal/binary_search.cuh"
#include "kernels/cuda/multifrontal/front_solve.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace front_solve {

inline constexpr int kThreads = 256;
// Rows, or columns, per block at the start of the way down.
inline constexpr int kDownRows = kWarp;
inline constexpr int kDownColumns = kThreads / kWarp;
// Border rows that pass through shared memory at a time.
template <int kColumns>
inline constexpr int kBorderChunk = kColumns == 1 ? 256 : 64;
// Largest block size at the start of the way up.
inline constexpr int kMaxUpThreads = 1024;

// Right-hand sides that a block handles at a time, if there are more than one.
inline constexpr int kColumnsPerBlock = 4;

// One block per front and kColumns right-hand sides. Each group of loads precedes its stores,
// because a load behind a store would wait for it.
template <class T, int kColumns>
__global__ void __launch_bounds__(kMaxUpThreads)
    StartUpKernel(FrontSolve<T> solve, const int32_t* order, bool interchanges) {
  constexpr int kRows = kColumns == 1 ? 4 : 2;  // at a time
  ReleaseDependentKernel();
  const Front front = solve.tree.fronts[order[blockIdx.x]];
  const int begin = static_cast<int>(blockIdx.y) * kColumns;
  const int columns = min(kColumns, solve.columns - begin);
  const MatrixView<T> own = solve.Own(solve.b, front);
  const MatrixView<T> left = solve.Left(front);
  AwaitPreviousKernel();
  for (int c = 0; c < columns; ++c) {
    for (int64_t i = threadIdx.x; i < front.d2; i += blockDim.x) left(i, begin + c) = T{0};
  }
  __syncthreads();
  for (int32_t child_at = front.child_begin; child_at < front.child_end; ++child_at) {
    const Front child = solve.tree.fronts[solve.tree.child[child_at]];
    const MatrixView<T> from = solve.Left(child);
    const int32_t* const place = solve.tree.place + child.border;
    for (int64_t first = threadIdx.x; first < child.d2; first += kRows * blockDim.x) {
      T* to[kRows];
      int64_t ld[kRows];
      T sums[kRows][kColumns];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int64_t i = first + r * blockDim.x;
        if (i >= child.d2) continue;
        const int32_t at = place[i];
        const bool is_own = at < front.d1;
        to[r] = is_own ? &own(at, begin) : &left(at - front.d1, begin);
        ld[r] = is_own ? own.ld : left.ld;
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int64_t i = first + r * blockDim.x;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          if (i < child.d2 && c < columns) sums[r][c] = to[r][c * ld[r]] + from(i, begin + c);
        }
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          if (first + r * blockDim.x < child.d2 && c < columns) to[r][c * ld[r]] = sums[r][c];
        }
      }
    }
    __syncthreads();
  }
  const MatrixView<T> x = solve.Own(solve.x, front);
  for (int64_t i = threadIdx.x; i < front.d1; i += blockDim.x) {
    const int64_t row = interchanges ? solve.permutation[front.first + i] : i;
    T values[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (c < columns) values[c] = own(row, begin + c);
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (c < columns) x(i, begin + c) = values[c];
    }
  }
}

// Returns the solution at place `place` of the parent, with all columns, as one row.
template <class T>
__device__ MatrixView<const T> AtBorder(const FrontSolve<T>& solve, const Front& parent,
                                        int32_t place) {
  if (place < parent.d1) {
    return {&solve.Own(solve.x, parent)(place, 0), 1, solve.columns, parent.d1};
  }
  return {&solve.Left(parent)(place - parent.d1, 0), 1, solve.columns, parent.d2};
}

// Copies the solution at a front's border to shared memory, in chunks of kBorderChunk<kColumns>
// rows. While a chunk is in use, the next chunk is loaded, and so are the places in the parent of
// the chunk after it. A thread handles one row of each chunk. Used by all threads of a block.
template <class T, int kColumns>
class BorderChunks {
 public:
  static constexpr int kChunk = kBorderChunk<kColumns>;
  using Chunk = T[kChunk][kColumns];

  __device__ BorderChunks(const FrontSolve<T>& solve, const Front& front)
      : solve_(solve),
        front_(front),
        parent_(solve.tree.fronts[front.parent]),
        line_(static_cast<int>(threadIdx.x) % kChunk),
        column_(static_cast<int>(threadIdx.x) / kChunk) {
    Find(0);
  }

  // Loads the chunk whose first row is `first`. Chunks must be loaded in order, the first one after
  // AwaitPreviousKernel().
  __device__ void Load(int64_t first) {
    const bool inside = first + line_ < front_.d2;
#pragma unroll
    for (int s = 0; s < kEach; ++s) {
      const int c = column_ + s * kApart;
      values_[s] = inside && c < solve_.columns ? AtBorder(solve_, parent_, place_)(0, c) : T{0};
    }
    Find(first + kChunk);
  }

  // chunk := the chunk loaded last, with zeros behind the border's last row. With `stores`, also
  // stores it in the front's `left`.
  __device__ void Put(int64_t first, bool stores, Chunk& chunk) const {
#pragma unroll
    for (int s = 0; s < kEach; ++s) {
      const int c = column_ + s * kApart;
      chunk[line_][c] = values_[s];
      if (stores && first + line_ < front_.d2 && c < solve_.columns) {
        solve_.Left(front_)(first + line_, c) = values_[s];
      }
    }
  }

 private:
  static constexpr int kApart = kThreads / kChunk;
  static constexpr int kEach = kColumns / kApart;
  static_assert(kApart * kChunk == kThreads && kEach * kApart == kColumns);

  __device__ void Find(int64_t first) {
    place_ = first + line_ < front_.d2 ? solve_.tree.place[front_.border + first + line_] : 0;
  }

  const FrontSolve<T>& solve_;
  const Front& front_;
  const Front parent_;
  const int line_;
  const int column_;
  int32_t place_;
  T values_[kEach];
};

template <class T, int kColumns>
struct DownShared {
  T border[kBorderChunk<kColumns>][kColumns];
  T sums[kThreads / kWarp][kDownRows][kColumns];
};

// For op none. One block per front and kDownRows of its own rows. Each warp handles some columns of
// U12; the warps' sums are added in order.
template <class T, int kColumns>
__global__ void __launch_bounds__(kThreads)
    StartDownKernel(FrontSolve<T> solve, const int32_t* order) {
  constexpr int kWarps = kThreads / kWarp;
  constexpr int kChunk = kBorderChunk<kColumns>;
  constexpr int kEach = kChunk / kWarps;
  ReleaseDependentKernel();
  auto& shared = SharedByBlock<DownShared<T, kColumns>>();
  const Front front = solve.tree.fronts[order[blockIdx.x]];
  const int64_t first = blockIdx.y * int64_t{kDownRows};
  if (front.d2 == 0 || first >= front.d1) {
    // Otherwise this kernel could end before the previous one, and the next one start too early.
    AwaitPreviousKernel();
    return;
  }
  const MatrixView<const T> u12 = front.U12<const T>(solve.factor);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t row = first + lane;
  const auto of_u12 = [&](int64_t begin, int s) {
    const int64_t j = begin + s * kWarps + warp;
    return row < front.d1 && j < front.d2 ? u12(row, j) : T{0};
  };
  T values[kEach];
#pragma unroll
  for (int s = 0; s < kEach; ++s) values[s] = of_u12(0, s);
  BorderChunks<T, kColumns> chunks(solve, front);
  AwaitPreviousKernel();
  chunks.Load(0);
  T sums[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) sums[c] = T{0};
  for (int64_t begin = 0; begin < front.d2; begin += kChunk) {
    __syncthreads();
    chunks.Put(begin, /*stores=*/blockIdx.y == 0, shared.border);
    __syncthreads();
    chunks.Load(begin + kChunk);
#pragma unroll
    for (int s = 0; s < kEach; ++s) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        sums[c] = PlusProduct(sums[c], values[s], shared.border[s * kWarps + warp][c]);
      }
      values[s] = of_u12(begin + kChunk, s);
    }
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) shared.sums[warp][lane][c] = sums[c];
  __syncthreads();
  const MatrixView<T> own = solve.Own(solve.b, front);
  for (int e = static_cast<int>(threadIdx.x); e < kDownRows * solve.columns; e += kThreads) {
    const int i = e % kDownRows;
    const int c = e / kDownRows;
    if (first + i >= front.d1) continue;
    T sum = shared.sums[0][i][c];
    for (int w = 1; w < kWarps; ++w) sum += shared.sums[w][i][c];
    own(first + i, c) -= sum;
  }
}

// For the other ops. One block per front and kDownColumns of its columns, one warp per column.
template <class T, int kColumns>
__global__ void __launch_bounds__(kThreads)
    StartDownTransposedKernel(FrontSolve<T> solve, const int32_t* order) {
  constexpr int kChunk = kBorderChunk<kColumns>;
  ReleaseDependentKernel();
  auto& border = SharedByBlock<DownShared<T, kColumns>>().border;
  const Front front = solve.tree.fronts[order[blockIdx.x]];
  const int64_t first = blockIdx.y * int64_t{kDownColumns};
  if (front.d2 == 0 || first >= front.d1) {
    AwaitPreviousKernel();
    return;
  }
  const bool conjugate = solve.op == Op::kConjugateTranspose;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t column = first + threadIdx.x / kWarp;
  const T* const l21 = &front.Panel<const T>(solve.factor)(front.d1, column);
  BorderChunks<T, kColumns> chunks(solve, front);
  AwaitPreviousKernel();
  chunks.Load(0);
  T sums[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) sums[c] = T{0};
  for (int64_t begin = 0; begin < front.d2; begin += kChunk) {
    __syncthreads();
    chunks.Put(begin, /*stores=*/blockIdx.y == 0, border);
    __syncthreads();
    chunks.Load(begin + kChunk);
    if (column >= front.d1) continue;
#pragma unroll
    for (int i = lane; i < kChunk; i += kWarp) {
      if (begin + i >= front.d2) break;
      const T value = conjugate ? Conjugate(l21[begin + i]) : l21[begin + i];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sums[c] = PlusProduct(sums[c], value, border[i][c]);
    }
  }
  if (column >= front.d1) return;  // uniform in the warp
  const MatrixView<T> own = solve.Own(solve.b, front);
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const T sum = WarpReduce(sums[c], Sum());
    if (lane == 0 && c < solve.columns) own(column, c) -= sum;
  }
}

}  // namespace front_solve
}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_START_CUH_
