// SPDX-License-Identifier: Apache-2.0

// One step of the solve with a front: a tile of its diagonal, and the lines outside of the tile.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_STEP_CUH_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_STEP_CUH_

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/multifrontal/binary_search.cuh"
#include "kernels/cuda/multifrontal/front_solve.h"
#include "kernels/cuda/multifrontal/front_solve_tile.cuh"

namespace crout::cuda {
namespace front_solve {

// Rows or columns outside of a step's own from which one block subtracts the step.
inline constexpr int kStepLines = 128;

// One step of one front:
//   kUp, op none: L, forward        kUp, other op: op(U), forward
//   not kUp, op none: U, backward   not kUp, other op: op(L), backward
template <class T, int kColumns, bool kUp, bool kTransposed>
class FrontStep {
 public:
  using Shared = StepShared<T, kColumns>;

  __device__ FrontStep(const FrontSolve<T>& solve, const Front& front, int begin, int width,
                       Shared& shared)
      : solve_(solve),
        front_(front),
        panel_(front.Panel<const T>(solve.factor)),
        begin_(begin),
        width_(width),
        shared_(shared),
        conjugate_(solve.op == Op::kConjugateTranspose) {}

  // The number of rows, or columns with kTransposed, from which the step is subtracted.
  __device__ int64_t Lines() const { return kUp ? front_.size() - begin_ - width_ : begin_; }

  // Reads the factor before the previous kernel has ended.
  __device__ void Run(int64_t first_line, bool stores) {
    LoadTile();
    if constexpr (kTransposed) {
      Invert();
      AwaitPreviousKernel();
      Solve(stores);
      TakeOffColumns(first_line);
    } else {
      const int64_t line = first_line + threadIdx.x;
      const bool inside = threadIdx.x < kStepLines && line < Lines();
      const int64_t row = kUp ? begin_ + width_ + line : line;
      T values[kTile];
      Invert();
      LoadRow(inside, row, values);
      AwaitPreviousKernel();
      T rest[kColumns];
      LoadRest(inside, row, rest);
      Solve(stores);
      if (inside) TakeOffRow(row, values, rest);
    }
  }

 private:
  static constexpr int kTile = kSolveTile<T>;
  static constexpr bool kUnit = kUp != kTransposed;

  __device__ T ConjugateIfSet(T value) const {
    return kTransposed && conjugate_ ? Conjugate(value) : value;
  }

  // Elements outside of the step's rows and columns are zero, and their diagonal divides by one.
  __device__ void LoadTile() const {
    constexpr int kUnroll = 8;  // loads in flight
    constexpr int kApart = kStepThreads / kTile;
    const int i = static_cast<int>(threadIdx.x) % kTile;
    for (int first = static_cast<int>(threadIdx.x) / kTile; first < kTile;
         first += kUnroll * kApart) {
      T values[kUnroll];
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) {
        const int k = first + s * kApart;
        values[s] = i < width_ && k < width_ ? panel_(begin_ + i, begin_ + k) : T{0};
      }
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) {
        const int k = first + s * kApart;
        const T value = ConjugateIfSet(values[s]);
        if constexpr (kTransposed) {
          shared_.tile[i][k] = value;
        } else {
          shared_.tile[k][i] = value;
        }
        if (i == k && !kUnit) shared_.diagonal[k] = DivideBy<T>(k < width_ ? value : T{1});
      }
    }
  }

  // values := the elements of `row` in the step's columns. Loads the two halves separately, because
  // small fronts have only one.
  __device__ void LoadRow(bool inside, int64_t row, T (&values)[kTile]) const {
    const T* const a = inside ? &panel_(row, begin_) : panel_.data;
#pragma unroll
    for (int half = 0; half < kTile; half += kTile / 2) {
      if (half >= width_) break;
#pragma unroll
      for (int k = half; k < half + kTile / 2; ++k) {
        values[k] = inside && k < width_ ? a[k * panel_.ld] : T{0};
      }
    }
  }

  __device__ void Invert() const {
    __syncthreads();
    InvertTile<kUp, kUnit>(width_, shared_);
  }

  __device__ void Solve(bool stores) const {
    const MatrixView<T> from = solve_.Own(kUp ? solve_.x : solve_.b, front_);
    for (int e = static_cast<int>(threadIdx.x); e < kTile * kColumns; e += kStepThreads) {
      const int i = e % kTile;
      const int c = e / kTile;
      shared_.x[i][c] = i < width_ && c < solve_.columns ? from(begin_ + i, c) : T{0};
    }
    __syncthreads();
    SolveTile<kUp, kUnit>(width_, solve_.columns, shared_);
    __syncthreads();
    if (stores) Store();
  }

  __device__ void Store() const {
    const MatrixView<T> to = solve_.Own(kUp ? solve_.b : solve_.x, front_);
    for (int e = static_cast<int>(threadIdx.x); e < width_ * solve_.columns; e += kStepThreads) {
      const int i = e % width_;
      const int c = e / width_;
      // The row interchanges of op(L), in reverse.
      const int row =
          !kUp && kTransposed ? solve_.permutation[front_.first + begin_ + i] : begin_ + i;
      to(row, c) = shared_.x[i][c];
    }
  }

  // The element of column c at that row or column of the front.
  __device__ T& Target(int64_t line, int c) const {
    if (line >= front_.d1) return solve_.Left(front_)(line - front_.d1, c);
    return solve_.Own(kUp ? solve_.x : solve_.b, front_)(line, c);
  }

  // rest := the elements of `row` from which the step is subtracted. Loads all columns first,
  // because a load behind a store would wait for it.
  __device__ void LoadRest(bool inside, int64_t row, T (&rest)[kColumns]) const {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      rest[c] = inside && c < solve_.columns ? Target(row, c) : T{0};
    }
  }

  __device__ void TakeOffRow(int64_t row, const T (&values)[kTile], T (&rest)[kColumns]) const {
#pragma unroll
    for (int half = 0; half < kTile; half += kTile / 2) {
      if (half >= width_) break;
#pragma unroll
      for (int k = half; k < half + kTile / 2; ++k) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          rest[c] = MinusProduct(rest[c], values[k], shared_.x[k][c]);
        }
      }
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (c < solve_.columns) Target(row, c) = rest[c];
    }
  }

  // kLanes threads share a column.
  __device__ void TakeOffColumns(int64_t first_line) const {
    constexpr int kLanes = 8;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    for (int done = 0; done < kStepLines; done += kStepThreads / kLanes) {
      const int64_t line = first_line + done + threadIdx.x / kLanes;
      const bool inside = line < Lines();
      const int64_t column = kUp ? begin_ + width_ + line : line;
      T sums[kColumns];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sums[c] = T{0};
      if (inside) {
        const T* const a = column < front_.d1
                               ? &panel_(begin_, column)
                               : &front_.U12<const T>(solve_.factor)(begin_, column - front_.d1);
#pragma unroll 4
        for (int i = lane; i < width_; i += kLanes) {
          const T value = ConjugateIfSet(a[i]);
#pragma unroll
          for (int c = 0; c < kColumns; ++c) sums[c] = PlusProduct(sums[c], value, shared_.x[i][c]);
        }
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
#pragma unroll
        for (int step = kLanes / 2; step > 0; step /= 2) {
          sums[c] = sums[c] + ShuffleXor(sums[c], step);
        }
        if (inside && c % kLanes == lane && c < solve_.columns) Target(column, c) -= sums[c];
      }
    }
  }

  const FrontSolve<T>& solve_;
  const Front& front_;
  const MatrixView<const T> panel_;
  const int begin_;
  const int width_;
  Shared& shared_;
  const bool conjugate_;
};

// One block per front and kStepLines of the lines from which its step is subtracted. All blocks
// solve; the first one stores the solution.
template <class T, int kColumns, bool kUp, bool kTransposed>
__global__ void __launch_bounds__(kStepThreads)
    StepKernel(FrontSolve<T> solve, const int32_t* order, int step) {
  using OfFront = FrontStep<T, kColumns, kUp, kTransposed>;
  constexpr int kTile = kSolveTile<T>;
  ReleaseDependentKernel();
  const Front front = solve.tree.fronts[order[blockIdx.x]];
  const int steps = (front.d1 + kTile - 1) / kTile;
  const int begin = (kUp ? step : steps - 1 - step) * kTile;
  OfFront of_front(solve, front, begin, min(kTile, front.d1 - begin),
                   SharedByBlock<typename OfFront::Shared>());
  const int64_t first = blockIdx.y * int64_t{kStepLines};
  if (step >= steps || (blockIdx.y > 0 && first >= of_front.Lines())) {
    // Otherwise this kernel could end before the previous one, and the next one start too early.
    AwaitPreviousKernel();
    return;
  }
  of_front.Run(first, blockIdx.y == 0);
}

}  // namespace front_solve
}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_STEP_CUH_
