// SPDX-License-Identifier: Apache-2.0

// The kernels of solves with multifrontal factors; each front_solve_*.cu instantiates them for one
// element type.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_KERNELS_CUH_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_KERNELS_CUH_

#include <type_traits>

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/divide_by.cuh"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/multifrontal/front_search.cuh"
#include "kernels/cuda/multifrontal/front_solve.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace front_solve {

inline constexpr int kThreads = 256;
inline constexpr int kStepThreads = 128;
inline constexpr int kStepWarps = kStepThreads / kWarp;
// Rows or columns outside of a step's own from which one block subtracts the step.
inline constexpr int kStepLines = 128;
// Rows, or columns, per block at the start of the way down.
inline constexpr int kDownRows = kWarp;
inline constexpr int kDownColumns = kThreads / kWarp;
// Border rows that pass through shared memory at a time.
template <int kColumns>
inline constexpr int kBorderChunk = kColumns == 1 ? 256 : 64;
// Largest block size at the start of the way up.
inline constexpr int kMostUpThreads = 1024;

inline unsigned BlocksFor(int64_t count, int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

// ---- Copies between positions and A's indices.

template <class T>
__device__ T Times(T x, double scale) {
  return static_cast<T>(Widen(x) * scale);
}

// to(i_to, j) := from(i_from, j) for all columns, times *scale if it is not null. Does kAtOnce
// loads before their stores, because a load behind a store would wait for it.
inline constexpr int kAtOnce = 4;
template <class T>
__device__ void CopyRow(const MatrixView<const T>& from, int64_t i_from, const double* scale,
                        const MatrixView<T>& to, int64_t i_to, int columns) {
  for (int first = 0; first < columns; first += kAtOnce) {
    T values[kAtOnce];
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      if (first + s < columns) values[s] = from(i_from, first + s);
    }
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      if (first + s >= columns) break;
      to(i_to, first + s) = scale == nullptr ? values[s] : Times(values[s], *scale);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    GatherKernel(FrontSolve<T> solve, int64_t n, const int32_t* index, const double* scale,
                 MatrixView<const T> rhs) {
  const int64_t k = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (k >= n) return;
  const int32_t i = index[k];
  const Front& front = solve.tree.fronts[FrontOf(solve.tree, k)];
  CopyRow<T>(rhs, i, scale == nullptr ? nullptr : scale + i, solve.Own(solve.b, front),
             k - front.first, solve.columns);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    ScatterKernel(FrontSolve<T> solve, int64_t n, const int32_t* index, const double* scale,
                  MatrixView<T> solution) {
  const int64_t k = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (k >= n) return;
  const int32_t i = index[k];
  const Front& front = solve.tree.fronts[FrontOf(solve.tree, k)];
  const MatrixView<T> x = solve.Own(solve.x, front);
  CopyRow<T>({x.data, x.rows, x.cols, x.ld}, k - front.first,
             scale == nullptr ? nullptr : scale + i, solution, i, solve.columns);
}

// ---- Steps.

// The order of the diagonal blocks that are inverted in a step's triangle.
inline constexpr int kInverted = kWarp / 2;

// The largest accepted column sum of moduli, for a block to be inverted and for its inverse, so the
// condition is at most the square. |b - S fl(S^-1 b)| is at most a few u |S| |S^-1| |b| (Higham,
// Accuracy and Stability of Numerical Algorithms, 14.1). So the normwise backward error of a
// product with the inverse grows with the condition, while that of substitution does not. The
// componentwise backward error may be large if the solution's elements differ greatly in size;
// refinement corrects it.
inline constexpr int kMostColumnSum = 6;

template <class T, int kColumns>
struct StepShared {
  // The step's rows and columns of op(F11), one triangle of which is used: [column][row]. Zero
  // outside of them. InvertBlock replaces the diagonal blocks that `inverted` marks.
  T tile[kSolveTile<T>][kSolveTile<T> + 1];
  DivideBy<T> diagonal[kSolveTile<T>];
  bool inverted[kSolveTile<T> / kInverted];
  T x[kSolveTile<T>][kColumns];
};

// Replaces the diagonal block from `first` on by its inverse, so that a product replaces a chain of
// dependent steps. For a block with a non-unit diagonal D, inverts S := block times D^-1, so that
// no reciprocal of a tiny or huge pivot enters. If a column sum of S or of the inverse exceeds
// kMostColumnSum, leaves the block unmodified and returns false. kForward: the block is lower
// triangular. Called by a warp; each lane handles one column.
template <bool kForward, bool kUnit, class T, int kColumns>
__device__ bool InvertBlock(int first, StepShared<T, kColumns>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  T column[kInverted];
#pragma unroll
  for (int i = 0; i < kInverted; ++i) column[i] = i == lane ? T{1} : T{0};
#pragma unroll
  for (int s = 0; s < kInverted; ++s) {
    const int k = kForward ? s : kInverted - 1 - s;
    const T of_k = kUnit ? column[k] : shared.diagonal[first + k](column[k]);
#pragma unroll
    for (int i = kForward ? k + 1 : 0; i < (kForward ? kInverted : k); ++i) {
      column[i] = MinusProduct(column[i], shared.tile[first + k][first + i], of_k);
    }
  }
  // Both halves of the warp check the same columns of S. The unused lanes' columns of the inverse
  // are 0.
  const int own = first + lane % kInverted;
  RealPart<T> of_block{0};
  RealPart<T> of_inverse{0};
#pragma unroll
  for (int i = 0; i < kInverted; ++i) {
    const bool takes = kForward ? first + i > own : first + i < own;
    if (takes) of_block += Abs1(shared.tile[own][first + i]);
    of_inverse += Abs1(column[i]);
  }
  if constexpr (!kUnit) of_block = Abs1(shared.diagonal[own](T{of_block}));
  // False for NaN.
  const bool small = of_block <= kMostColumnSum - 1 && of_inverse <= kMostColumnSum;
  if (__ballot_sync(kAllLanes, small) != kAllLanes) return false;
  if (lane < kInverted) {
#pragma unroll
    for (int i = 0; i < kInverted; ++i) shared.tile[first + lane][first + i] = column[i];
  }
  return true;
}

// Inverts the diagonal blocks that allow it, one warp each. Called by all threads of a block. The
// tile must be complete before the call; the results are visible after the next __syncthreads().
template <bool kForward, bool kUnit, class T, int kColumns>
__device__ void InvertTile(int width, StepShared<T, kColumns>& shared) {
  static_assert(kSolveTile<T> / kInverted <= kStepWarps);
  const int block = static_cast<int>(threadIdx.x) / kWarp;
  if (block * kInverted >= width) return;
  const bool inverted = InvertBlock<kForward, kUnit>(block * kInverted, shared);
  if (threadIdx.x % kWarp == 0) shared.inverted[block] = inverted;
}

// sums := row `row` of the tile's columns [from, from + kTerms), times the same rows of x.
template <int kTerms, int kEach, class T, int kColumns>
__device__ void MultiplyRow(const StepShared<T, kColumns>& shared, int row, int from,
                            int first_column, T (&sums)[kEach]) {
#pragma unroll
  for (int c = 0; c < kEach; ++c) sums[c] = T{0};
#pragma unroll
  for (int k = from; k < from + kTerms; ++k) {
    const T factor = shared.tile[k][row];
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
      sums[c] = PlusProduct(sums[c], factor, shared.x[k][first_column + c]);
    }
  }
}

// x := the inverted block from `first` on times x, for kEach columns. Two lanes share a row. Called
// by a warp.
template <bool kUnit, int kEach, class T, int kColumns>
__device__ void MultiplyBlock(int first, int first_column, StepShared<T, kColumns>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = first + lane % kInverted;
  constexpr int kTerms = kInverted / 2;
  T sums[kEach];
  MultiplyRow<kTerms>(shared, row, first + lane / kInverted * kTerms, first_column, sums);
#pragma unroll
  for (int c = 0; c < kEach; ++c) sums[c] = sums[c] + ShuffleXor(sums[c], kInverted);
  __syncwarp();
  if (lane < kInverted) {
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
      shared.x[row][first_column + c] = kUnit ? sums[c] : shared.diagonal[row](sums[c]);
    }
  }
  __syncwarp();
}

// The same for a block that is not inverted. Both halves of the warp compute the same.
template <bool kForward, bool kUnit, int kEach, class T, int kColumns>
__device__ void SubstituteBlock(int first, int first_column, StepShared<T, kColumns>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int i = lane % kInverted;
  T own[kEach];
#pragma unroll
  for (int c = 0; c < kEach; ++c) own[c] = shared.x[first + i][first_column + c];
#pragma unroll 4
  for (int s = 0; s < kInverted; ++s) {
    const int k = kForward ? s : kInverted - 1 - s;
    const T factor = (kForward ? i > k : i < k) ? shared.tile[first + k][first + i] : T{0};
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
      T of_k = Shuffle(own[c], k);
      if constexpr (!kUnit) {
        of_k = shared.diagonal[first + k](of_k);
        if (i == k) own[c] = of_k;
      }
      own[c] = MinusProduct(own[c], factor, of_k);
    }
  }
  __syncwarp();
  if (lane < kInverted) {
#pragma unroll
    for (int c = 0; c < kEach; ++c) shared.x[first + i][first_column + c] = own[c];
  }
  __syncwarp();
}

// Solves op(T) x = b for the tile, in the state in which InvertTile left it, and the columns in
// shared memory. kForward: op(T) is lower triangular. Called by all threads of a block; each warp
// handles a quarter of the columns.
template <bool kForward, bool kUnit, class T, int kColumns>
__device__ void SolveTile(int width, int columns, StepShared<T, kColumns>& shared) {
  constexpr int kTile = kSolveTile<T>;
  constexpr int kBlocks = kTile / kInverted;
  constexpr int kEach = (kColumns + kStepWarps - 1) / kStepWarps;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int first_column = static_cast<int>(threadIdx.x) / kWarp * kEach;
  if (first_column >= columns) return;
#pragma unroll 1  // saves registers
  for (int s = 0; s < kBlocks; ++s) {
    const int block = kForward ? s : kBlocks - 1 - s;
    const int first = block * kInverted;
    if (first >= width) continue;
    if (shared.inverted[block]) {
      MultiplyBlock<kUnit, kEach>(first, first_column, shared);
    } else {
      SubstituteBlock<kForward, kUnit, kEach>(first, first_column, shared);
    }
    // Subtract the product from the rows that follow.
#pragma unroll
    for (int r = 0; r < kTile; r += kWarp) {
      if (kForward ? r + kWarp <= first + kInverted : r >= first) continue;
      const int i = r + lane;
      T sums[kEach];
      MultiplyRow<kInverted>(shared, i, first, first_column, sums);
      if (kForward ? i < first + kInverted : i >= first) continue;
#pragma unroll
      for (int c = 0; c < kEach; ++c) {
        T& to = shared.x[i][first_column + c];
        to = to - sums[c];
      }
    }
    __syncwarp();
  }
}

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
      AwaitKernelBefore();
      Solve(stores);
      TakeOffColumns(first_line);
    } else {
      const int64_t line = first_line + threadIdx.x;
      const bool inside = threadIdx.x < kStepLines && line < Lines();
      const int64_t row = kUp ? begin_ + width_ + line : line;
      T values[kTile];
      Invert();
      LoadRow(inside, row, values);
      AwaitKernelBefore();
      T rest[kColumns];
      LoadRest(inside, row, rest);
      Solve(stores);
      if (inside) TakeOffRow(row, values, rest);
    }
  }

 private:
  static constexpr int kTile = kSolveTile<T>;
  static constexpr bool kUnit = kUp != kTransposed;

  __device__ T Given(T value) const { return kTransposed && conjugate_ ? Conjugate(value) : value; }

  // Elements outside of the step's rows and columns are zero, and their diagonal divides by one.
  __device__ void LoadTile() const {
    constexpr int kTogether = 8;  // loads in flight
    constexpr int kApart = kStepThreads / kTile;
    const int i = static_cast<int>(threadIdx.x) % kTile;
    for (int first = static_cast<int>(threadIdx.x) / kTile; first < kTile;
         first += kTogether * kApart) {
      T values[kTogether];
#pragma unroll
      for (int s = 0; s < kTogether; ++s) {
        const int k = first + s * kApart;
        values[s] = i < width_ && k < width_ ? panel_(begin_ + i, begin_ + k) : T{0};
      }
#pragma unroll
      for (int s = 0; s < kTogether; ++s) {
        const int k = first + s * kApart;
        const T value = Given(values[s]);
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
          const T value = Given(a[i]);
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
  ReleaseKernelBehind();
  const Front front = solve.tree.fronts[order[blockIdx.x]];
  const int steps = (front.d1 + kTile - 1) / kTile;
  const int begin = (kUp ? step : steps - 1 - step) * kTile;
  OfFront of_front(solve, front, begin, min(kTile, front.d1 - begin),
                   SharedByBlock<typename OfFront::Shared>());
  const int64_t first = blockIdx.y * int64_t{kStepLines};
  if (step >= steps || (blockIdx.y > 0 && first >= of_front.Lines())) {
    // Otherwise this kernel could end before the previous one, and the next one start too early.
    AwaitKernelBefore();
    return;
  }
  of_front.Run(first, blockIdx.y == 0);
}

// ---- The start of the way up.

// Right-hand sides that a block handles at a time, if there are more than one.
inline constexpr int kUpTogether = 4;

// One block per front and kColumns right-hand sides. Each group of loads precedes its stores,
// because a load behind a store would wait for it.
template <class T, int kColumns>
__global__ void __launch_bounds__(kMostUpThreads)
    StartUpKernel(FrontSolve<T> solve, const int32_t* order, bool interchanges) {
  constexpr int kRows = kColumns == 1 ? 4 : 2;  // at a time
  ReleaseKernelBehind();
  const Front front = solve.tree.fronts[order[blockIdx.x]];
  const int begin = static_cast<int>(blockIdx.y) * kColumns;
  const int columns = min(kColumns, solve.columns - begin);
  const MatrixView<T> own = solve.Own(solve.b, front);
  const MatrixView<T> left = solve.Left(front);
  AwaitKernelBefore();
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

// ---- The start of the way down.

// The solution at place `place` of the parent, all columns of it, as one row.
template <class T>
__device__ MatrixView<const T> AtBorder(const FrontSolve<T>& solve, const Front& parent,
                                        int32_t place) {
  if (place < parent.d1) {
    return {&solve.Own(solve.x, parent)(place, 0), 1, solve.columns, parent.d1};
  }
  return {&solve.Left(parent)(place - parent.d1, 0), 1, solve.columns, parent.d2};
}

// Copies the solution at a front's border to shared memory, in chunks of kBorderChunk<kColumns>
// rows. While a chunk is in use, the next one is loaded, and the places in the parent of the one
// after that. A thread handles one row of each chunk. Used by all threads of a block.
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
  // AwaitKernelBefore().
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
  ReleaseKernelBehind();
  auto& shared = SharedByBlock<DownShared<T, kColumns>>();
  const Front front = solve.tree.fronts[order[blockIdx.x]];
  const int64_t first = blockIdx.y * int64_t{kDownRows};
  if (front.d2 == 0 || first >= front.d1) {
    // Otherwise this kernel could end before the previous one, and the next one start too early.
    AwaitKernelBefore();
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
  AwaitKernelBefore();
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
  ReleaseKernelBehind();
  auto& border = SharedByBlock<DownShared<T, kColumns>>().border;
  const Front front = solve.tree.fronts[order[blockIdx.x]];
  const int64_t first = blockIdx.y * int64_t{kDownColumns};
  if (front.d2 == 0 || first >= front.d1) {
    AwaitKernelBefore();
    return;
  }
  const bool conjugate = solve.op == Op::kConjugateTranspose;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t column = first + threadIdx.x / kWarp;
  const T* const l21 = &front.Panel<const T>(solve.factor)(front.d1, column);
  BorderChunks<T, kColumns> chunks(solve, front);
  AwaitKernelBefore();
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

// Calls f(c), with c the integral constant of the number of columns for which a kernel is compiled.
template <class T, class F>
cudaError_t ForColumns(int columns, F f) {
  if (columns == 1) return f(std::integral_constant<int, 1>());
  return f(std::integral_constant<int, kMostTogether<T>>());
}

template <bool kUp, class T>
cudaError_t LaunchStep(const FrontSolve<T>& solve, const FrontSet& set, int step,
                       cudaStream_t stream) {
  if (set.count == 0) return cudaSuccess;
  const int64_t done = int64_t{step} * kSolveTile<T>;
  const int64_t lines = (kUp ? set.size : set.d1) - done;
  const dim3 grid(static_cast<unsigned>(set.count),
                  BlocksOf(lines > 0 ? static_cast<int>(lines) : 1, kStepLines));
  return ForColumns<T>(solve.columns, [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    return LaunchBehind(solve.op == Op::kNone ? StepKernel<T, kColumns, kUp, false>
                                              : StepKernel<T, kColumns, kUp, true>,
                        grid, kStepThreads, 0, solve.overlap, stream, solve, set.order, step);
  });
}

}  // namespace front_solve

template <class T>
cudaError_t LaunchGather(const FrontSolve<T>& solve, int64_t n, const int32_t* index,
                         const double* scale, const MatrixView<const T>& rhs, cudaStream_t stream) {
  return LaunchBehind(front_solve::GatherKernel<T>,
                      front_solve::BlocksFor(n, front_solve::kThreads), front_solve::kThreads, 0,
                      /*overlap=*/false, stream, solve, n, index, scale, rhs);
}

template <class T>
cudaError_t LaunchScatter(const FrontSolve<T>& solve, int64_t n, const int32_t* index,
                          const double* scale, const MatrixView<T>& solution, cudaStream_t stream) {
  return LaunchBehind(front_solve::ScatterKernel<T>,
                      front_solve::BlocksFor(n, front_solve::kThreads), front_solve::kThreads, 0,
                      /*overlap=*/false, stream, solve, n, index, scale, solution);
}

template <class T>
cudaError_t LaunchStartUp(const FrontSolve<T>& solve, const FrontSet& set, bool interchanges,
                          cudaStream_t stream) {
  if (set.count == 0) return cudaSuccess;
  int threads = kWarp;
  while (threads < set.size && threads < front_solve::kMostUpThreads) threads *= 2;
  const bool one = solve.columns == 1;
  const dim3 grid(static_cast<unsigned>(set.count),
                  one ? 1 : front_solve::BlocksFor(solve.columns, front_solve::kUpTogether));
  return LaunchBehind(one ? front_solve::StartUpKernel<T, 1>
                          : front_solve::StartUpKernel<T, front_solve::kUpTogether>,
                      grid, threads, 0, solve.overlap, stream, solve, set.order, interchanges);
}

template <class T>
cudaError_t LaunchStepUp(const FrontSolve<T>& solve, const FrontSet& set, int step,
                         cudaStream_t stream) {
  return front_solve::LaunchStep<true>(solve, set, step, stream);
}

template <class T>
cudaError_t LaunchStartDown(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream) {
  if (set.count == 0 || set.d2 == 0) return cudaSuccess;
  return front_solve::ForColumns<T>(solve.columns, [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    const bool plain = solve.op == Op::kNone;
    const dim3 grid(static_cast<unsigned>(set.count),
                    BlocksOf(set.d1, plain ? front_solve::kDownRows : front_solve::kDownColumns));
    return LaunchBehind(plain ? front_solve::StartDownKernel<T, kColumns>
                              : front_solve::StartDownTransposedKernel<T, kColumns>,
                        grid, front_solve::kThreads, 0, solve.overlap, stream, solve, set.order);
  });
}

template <class T>
cudaError_t LaunchStepDown(const FrontSolve<T>& solve, const FrontSet& set, int step,
                           cudaStream_t stream) {
  return front_solve::LaunchStep<false>(solve, set, step, stream);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_KERNELS_CUH_
