// SPDX-License-Identifier: Apache-2.0

// Updates columns by a block of factored columns, with one block of threads: exchanges rows, solves
// with the triangle, and subtracts its product from the other rows. Serves both the matrix's own
// columns and right-hand sides.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_MEMBER_UPDATE_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_MEMBER_UPDATE_CUH_

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/irr_lu/exchange_rows.cuh"
#include "kernels/cuda/irr_lu/member_team.h"
#include "kernels/cuda/irr_lu/pivot.cuh"
#include "kernels/cuda/irr_lu/strided_matrix.cuh"
#include "kernels/cuda/ops/tile_product.cuh"
#include "kernels/matrix.h"

namespace crout::cuda {

// A triangle of order up to kBlock and the columns to solve for, in shared memory. The column
// stride lets a warp read tiles without bank conflicts.
template <class T>
struct UpdateTiles {
  static constexpr int kBlock = MemberBlocking<T>::kBlock;
  static constexpr int kColumnStride = kBlock + 4;

  alignas(16) T triangle[kBlock][kBlock];  // [column][row] of op(T)
  alignas(16) T solved[MemberBlocking<T>::kChunk][kColumnStride];
  DivideBy<T> diagonal[kBlock];  // unused if the diagonal is unit
};

// The triangle of op(A) to solve with. A non-unit diagonal is divided by.
struct TriangleKind {
  bool lower;
  bool unit;
};

// triangle := the triangle of op(A)'s leading `order` rows and columns, extended by the identity.
// Called by all threads of a block.
template <class T>
__device__ void LoadTriangle(const StridedMatrix<T>& a, int order, TriangleKind kind,
                             UpdateTiles<T>& tiles) {
  constexpr int kBlock = MemberBlocking<T>::kBlock;
  for (unsigned e = threadIdx.x; e < kBlock * kBlock; e += blockDim.x) {
    const int i = static_cast<int>(e % kBlock);
    const int k = static_cast<int>(e / kBlock);
    const bool inside = i < order && k < order;
    tiles.triangle[k][i] = inside && i != k && (i > k) == kind.lower ? a(i, k) : T{0};
    if (i == k && !kind.unit) tiles.diagonal[k] = DivideBy<T>(inside ? a(k, k) : T{1});
  }
}

// solved := rows [first_row, first_row + order) of `count` columns of `b` from first_col on. With
// kExchange, the rows are exchanged first: elements that move to other rows are written there
// directly. Called by all threads of a block.
template <bool kExchange, class T>
__device__ void GatherRows(const MatrixView<T>& b, int first_row, int order, int first_col,
                           int count, const Moves& moves, UpdateTiles<T>& tiles) {
  constexpr int kUnroll = 4;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const bool scatters = kExchange && moves.other_moves;
  for (int begin = warp; begin < count; begin += kUnroll * warps) {
    T of_row[kUnroll];
    T of_other[kUnroll];
#pragma unroll
    for (int c = 0; c < kUnroll; ++c) {
      if (begin + c * warps >= count) break;
      const T* const column = &b(0, first_col + begin + c * warps);
      of_row[c] = lane < order ? column[kExchange ? moves.row_from : first_row + lane] : T{0};
      if (scatters) of_other[c] = column[moves.other_from];
    }
    if (kExchange) __syncwarp();
#pragma unroll
    for (int c = 0; c < kUnroll; ++c) {
      if (begin + c * warps >= count) break;
      if (lane < UpdateTiles<T>::kBlock) tiles.solved[begin + c * warps][lane] = of_row[c];
      if (scatters) b(moves.other, first_col + begin + c * warps) = of_other[c];
    }
  }
}

// Solves for the `count` columns in `solved`, one thread per column. kDepth: at least the order of
// the triangle.
template <int kDepth, class T>
__device__ void SolveTriangle(TriangleKind kind, int count, UpdateTiles<T>& tiles) {
  const auto c = static_cast<int>(threadIdx.x);
  if (c >= count) return;
  T x[kDepth];
#pragma unroll
  for (int k = 0; k < kDepth; ++k) x[k] = tiles.solved[c][k];
  if (kind.lower) {
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      if (!kind.unit) x[k] = tiles.diagonal[k](x[k]);
#pragma unroll
      for (int i = k + 1; i < kDepth; ++i) x[i] = MinusProduct(x[i], tiles.triangle[k][i], x[k]);
    }
  } else {
#pragma unroll
    for (int k = kDepth - 1; k >= 0; --k) {
      if (!kind.unit) x[k] = tiles.diagonal[k](x[k]);
#pragma unroll
      for (int i = 0; i < k; ++i) x[i] = MinusProduct(x[i], tiles.triangle[k][i], x[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < kDepth; ++k) tiles.solved[c][k] = x[k];
}

// Stores `solved` in the rows of b from first_row on. Called by all threads of a block.
template <class T>
__device__ void StoreSolved(const UpdateTiles<T>& tiles, const MatrixView<T>& b, int first_row,
                            int order, int first_col, int count) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane >= order) return;
  for (unsigned c = threadIdx.x / kWarp; c < static_cast<unsigned>(count);
       c += blockDim.x / kWarp) {
    b(first_row + lane, first_col + c) = tiles.solved[c][lane];
  }
}

// The part of a product that a warp computes at a time: 16 rows and up to 32 columns.
template <int kDepth, class T>
class WarpProduct {
 public:
  static constexpr int kTiles = sizeof(T) > 8 ? 2 : 4;
  static constexpr int kColumns = kTiles * 8;

  // Loads rows [row, row + 16) of op(A), which has `rows` rows, and its `depth` <= kDepth columns.
  __device__ WarpProduct(const StridedMatrix<T>& a, int row, int rows, int depth)
      : row_(row), rows_(rows) {
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          const int i = row + 8 * half + TileGroup();
          const int k = 8 * s + 4 * step + TileThread();
          a_[s].values[half][step] = i < rows && k < depth ? -a(i, k) : T{0};
        }
      }
    }
  }

  // c := c - op(A) X in these rows and in columns [first, first + kColumns), of which only the
  // first `count` columns of `c` exist. X is `solved`.
  __device__ void Subtract(const UpdateTiles<T>& tiles, const MatrixView<T>& c, int first,
                           int count) const {
    TileOfC<T> sums[kTiles] = {};
    Visit(c, first, count, [&](int j, int e, T& at) { sums[j].values[e] = at; });
#pragma unroll
    for (int s = 0; s < kDepth / 8; ++s) {
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        if (first + 8 * j >= count) break;
        const T* const x = &tiles.solved[first + 8 * j + TileGroup()][8 * s + TileThread()];
        AddTileProduct(a_[s], {x[0], x[4]}, sums[j]);
      }
    }
    Visit(c, first, count, [&](int j, int e, T& at) { at = sums[j].values[e]; });
  }

 private:
  // Calls f(tile, e, element) for each element of `c` that this lane holds.
  template <class F>
  __device__ void Visit(const MatrixView<T>& c, int first, int count, F f) const {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = row_ + e / 2 * 8 + TileGroup();
        const int column = first + 8 * j + 2 * TileThread() + e % 2;
        if (i < rows_ && column < count) f(j, e, c(i, column));
      }
    }
  }

  TileOfA<T> a_[kDepth / 8];
  int row_;
  int rows_;
};

// c := c - op(A) X, with op(A) of c.rows x depth and X the first c.cols columns of `solved`. Called
// by all threads of a block.
template <int kDepth, class T>
__device__ void SubtractProduct(const StridedMatrix<T>& a, int depth, const UpdateTiles<T>& tiles,
                                const MatrixView<T>& c) {
  using Product = WarpProduct<kDepth, T>;
  const auto rows = static_cast<int>(c.rows);
  const auto count = static_cast<int>(c.cols);
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int strips = (rows + kTileRows - 1) / kTileRows;
  const int groups = (count + Product::kColumns - 1) / Product::kColumns;
  // Number of warps that share the column groups of a strip.
  const int shares = strips < warps ? groups : 1;
  for (int item = warp; item < strips * shares; item += warps) {
    const Product product(a, item / shares * kTileRows, rows, depth);
    for (int group = item % shares; group < groups; group += shares) {
      product.Subtract(tiles, c, group * Product::kColumns, count);
    }
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_MEMBER_UPDATE_CUH_
