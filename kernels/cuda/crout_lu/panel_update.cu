// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/panel_update.h"

#include <type_traits>

#include "kernels/cuda/blocked/interchanges.cuh"
#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/tile_product.cuh"

namespace crout::cuda {
namespace {

constexpr int kWarps = 4;
// Columns of a warp; fewer for types whose arithmetic takes longer than a step's latency.
template <class T>
constexpr int kColumns = std::is_same_v<T, Complex<double>> ? 2 : 4;

// A lane holds one row of each of its warp's columns, and the same row of L.
template <class T>
__global__ void __launch_bounds__(kWarps* kWarp)
    SwapAndSolveKernel(const LuPanel<T> panel, MatrixView<T> left, MatrixView<T> right,
                       MatrixView<T> beyond) {
  AwaitPreviousKernel();
  ReleaseDependentKernel();
  const int halt = panel.control->halt;
  const int lane = threadIdx.x % kWarp;
  const auto width = static_cast<int>(panel.a.cols);
  int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp) * kColumns<T>;
  // All columns of a warp belong to one of the three matrices.
  MatrixView<T> a = right;
  const bool solves = first < a.cols;
  for (const MatrixView<T>& next : {left, beyond}) {
    if (first < a.cols) break;
    first -= (a.cols + kColumns<T> - 1) / kColumns<T> * kColumns<T>;
    a = next;
  }
  T l[kWarp];
  if (solves) {
#pragma unroll
    for (int k = 0; k < kWarp - 1; ++k) l[k] = lane > k && lane < width ? panel.a(lane, k) : T{0};
  }
  const Moves moves = Trace(panel.ipiv + panel.begin, panel.begin, 0, width);
  if (halt != 0) return;
  T rows[kColumns<T>];
  T others[kColumns<T>];
#pragma unroll
  for (int c = 0; c < kColumns<T>; ++c) {
    const bool exists = first + c < a.cols;
    rows[c] = exists && lane < width ? a(moves.row_from, first + c) : T{0};
    if (exists && moves.other_moves) others[c] = a(moves.other_from, first + c);
  }
  __syncwarp();
  if (solves) {
#pragma unroll
    for (int k = 0; k < kWarp - 1; ++k) {
#pragma unroll
      for (int c = 0; c < kColumns<T>; ++c) {
        rows[c] = MinusProduct(rows[c], l[k], Shuffle(rows[c], k));
      }
    }
  }
#pragma unroll
  for (int c = 0; c < kColumns<T>; ++c) {
    if (first + c >= a.cols) break;
    if (lane < width) a(lane, first + c) = rows[c];
    if (moves.other_moves) a(moves.other, first + c) = others[c];
  }
}

constexpr int kTile = 32;
constexpr int kTileThreads = 128;
constexpr int kRows = 2;         // per thread, half a tile apart
constexpr int kTileColumns = 4;  // per thread, adjacent
constexpr int kPadding = 16;     // bytes

// complex128 needs four times the operations of real numbers, so tensor cores are faster. They are
// not faster for types whose product takes three tensor-core products.
template <class T>
constexpr bool kOnTensorCores = std::is_same_v<T, Complex<double>>;

// Pitch of a row of the tiles in shared memory. TileOfA and TileOfB read the tensor-core tiles;
// their lanes access different banks if rows are offset by 32 bytes.
template <class T>
constexpr int kLeftPitch = kTile +
                           (kOnTensorCores<T> ? 2 * kPadding / static_cast<int>(sizeof(T)) : 0);
template <class T>
constexpr int kTopPitch = kTile +
                          (kOnTensorCores<T> ? 2 : 1) * kPadding / static_cast<int>(sizeof(T));

// Subtracts left * top from the tile of `right`, once the block's threads have filled `left` and
// `top`. No-op on a halt.
template <class T>
__device__ void SubtractByThreads(const T (&left)[kTile][kLeftPitch<T>],
                                  const T (&top)[kTile][kTopPitch<T>], const MatrixView<T>& right,
                                  int64_t row, int64_t column, int halt) {
  const int64_t rows = right.rows - row;
  const int64_t columns = right.cols - column;
  const int first_row = threadIdx.x % (kTile / kRows);
  const int first_column = threadIdx.x / (kTile / kRows) * kTileColumns;
  T sums[kRows][kTileColumns];
  const auto for_each = [&](auto f) {
#pragma unroll
    for (int c = 0; c < kTileColumns; ++c) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int i = first_row + r * (kTile / kRows);
        const int j = first_column + c;
        if (i < rows && j < columns) f(right(row + i, column + j), sums[r][c]);
      }
    }
  };
  for_each([](const T& element, T& sum) { sum = element; });
  if (halt != 0) return;
  __syncthreads();
#pragma unroll 8
  for (int k = 0; k < kTile; ++k) {
    T l[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) l[r] = left[k][first_row + r * (kTile / kRows)];
#pragma unroll
    for (int c = 0; c < kTileColumns; ++c) {
      const T u = top[k][first_column + c];
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[r][c] = MinusProduct(sums[r][c], l[r], u);
    }
  }
  for_each([](T& element, const T& sum) { element = sum; });
}

// The same on the tensor cores; each warp handles a quarter of the tile.
template <class T>
__device__ void SubtractOnTensorCores(const T (&left)[kTile][kLeftPitch<T>],
                                      const T (&top)[kTile][kTopPitch<T>],
                                      const MatrixView<T>& right, int64_t row, int64_t column,
                                      int halt) {
  constexpr int kSides = 2;  // sides of 8 columns each
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int first_row = warp % 2 * 16 + TileGroup();
  const int first_column = warp / 2 * 16;
  TileOfC<T> sums[kSides];
  const auto for_each = [&](auto f) {
#pragma unroll
    for (int n = 0; n < kSides; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int64_t i = row + first_row + e / 2 * 8;
        const int64_t j = column + first_column + 8 * n + 2 * TileThread() + e % 2;
        if (i < right.rows && j < right.cols) f(right(i, j), sums[n].values[e]);
      }
    }
  };
  for_each([](const T& element, T& sum) { sum = element; });
  if (halt != 0) return;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kTile; k += 8) {
    TileOfA<T> minus_l;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        minus_l.values[half][step] = -left[k + 4 * step + TileThread()][first_row + 8 * half];
      }
    }
#pragma unroll
    for (int n = 0; n < kSides; ++n) {
      TileOfB<T> u;
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        u.values[step] = top[k + 4 * step + TileThread()][first_column + 8 * n + TileGroup()];
      }
      AddTileProduct(minus_l, u, sums[n]);
    }
  }
  for_each([](T& element, const T& sum) { element = sum; });
}

// Each block handles one tile of the product.
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    SubtractPanelKernel(const LuPanel<T> panel, MatrixView<T> right) {
  constexpr int kEach = kTile * kTile / kTileThreads;
  __shared__ __align__(16) T left[kTile][kLeftPitch<T>];  // columns of L, one after the other
  __shared__ __align__(16) T top[kTile][kTopPitch<T>];    // rows of U, one after the other
  const auto width = static_cast<int>(panel.a.cols);
  const int64_t row = width + static_cast<int64_t>(blockIdx.x) * kTile;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t rows = right.rows - row;
  const int64_t columns = right.cols - column;
  // The previous kernel lets this one start once L is stored.
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int i = threadIdx.x % kTile;
    const int k = e * (kTileThreads / kTile) + threadIdx.x / kTile;
    left[k][i] = k < width && i < rows ? panel.a(row + i, k) : T{0};
  }
  AwaitPreviousKernel();
  ReleaseDependentKernel();
  const int halt = panel.control->halt;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int k = threadIdx.x % kTile;
    const int j = e * (kTileThreads / kTile) + threadIdx.x / kTile;
    top[k][j] = k < width && j < columns ? right(k, column + j) : T{0};
  }
  if constexpr (kOnTensorCores<T>) {
    SubtractOnTensorCores(left, top, right, row, column, halt);
  } else {
    SubtractByThreads(left, top, right, row, column, halt);
  }
}

unsigned Blocks(int64_t count, int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

}  // namespace

template <class T>
cudaError_t LaunchSwapAndSolve(const LuPanel<T>& panel, const MatrixView<T>& left,
                               const MatrixView<T>& right, const MatrixView<T>& beyond,
                               bool overlap, cudaStream_t stream) {
  const unsigned warps = Blocks(left.cols, kColumns<T>) + Blocks(right.cols, kColumns<T>) +
                         Blocks(beyond.cols, kColumns<T>);
  if (warps == 0) return cudaSuccess;
  return LaunchDependent(SwapAndSolveKernel<T>, dim3(Blocks(warps, kWarps)), kWarps * kWarp, 0,
                         overlap, stream, panel, left, right, beyond);
}

template <class T>
cudaError_t LaunchSubtractPanel(const LuPanel<T>& panel, const MatrixView<T>& right, bool overlap,
                                cudaStream_t stream) {
  const dim3 grid(Blocks(right.rows - panel.a.cols, kTile), Blocks(right.cols, kTile));
  if (grid.x == 0 || grid.y == 0) return cudaSuccess;
  return LaunchDependent(SubtractPanelKernel<T>, grid, kTileThreads, 0, overlap, stream, panel,
                         right);
}

template cudaError_t LaunchSwapAndSolve(const LuPanel<float>&, const MatrixView<float>&,
                                        const MatrixView<float>&, const MatrixView<float>&, bool,
                                        cudaStream_t);
template cudaError_t LaunchSwapAndSolve(const LuPanel<double>&, const MatrixView<double>&,
                                        const MatrixView<double>&, const MatrixView<double>&, bool,
                                        cudaStream_t);
template cudaError_t LaunchSwapAndSolve(const LuPanel<Complex<float>>&,
                                        const MatrixView<Complex<float>>&,
                                        const MatrixView<Complex<float>>&,
                                        const MatrixView<Complex<float>>&, bool, cudaStream_t);
template cudaError_t LaunchSwapAndSolve(const LuPanel<Complex<double>>&,
                                        const MatrixView<Complex<double>>&,
                                        const MatrixView<Complex<double>>&,
                                        const MatrixView<Complex<double>>&, bool, cudaStream_t);
template cudaError_t LaunchSubtractPanel(const LuPanel<Complex<float>>&,
                                         const MatrixView<Complex<float>>&, bool, cudaStream_t);
template cudaError_t LaunchSubtractPanel(const LuPanel<Complex<double>>&,
                                         const MatrixView<Complex<double>>&, bool, cudaStream_t);
template cudaError_t LaunchSubtractPanel(const LuPanel<float>&, const MatrixView<float>&, bool,
                                         cudaStream_t);
template cudaError_t LaunchSubtractPanel(const LuPanel<double>&, const MatrixView<double>&, bool,
                                         cudaStream_t);

}  // namespace crout::cuda
