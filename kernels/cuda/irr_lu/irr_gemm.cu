// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/irr_blas.h"

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/strided_matrix.cuh"
#include "kernels/cuda/ops/tile_product.cuh"

namespace crout::cuda {
namespace {

// A block of four warps computes a tile of C, each warp a quarter of it. Slabs of terms pass
// through shared memory; the next slab is meanwhile loaded into registers.
constexpr int kThreads = 128;

template <class T>
struct GemmTile {
  static constexpr int kRows = 64;
  static constexpr int kColumns = sizeof(T) > 8 ? 32 : 64;
  static constexpr int kDepth = sizeof(T) > 8 ? 8 : 16;
  // Tiles of 16 x 8 per warp.
  static constexpr int kStrips = kRows / 2 / kTileRows;
  static constexpr int kTiles = kColumns / 2 / 8;
  // Row strides in shared memory. They let a warp read without bank conflicts.
  static constexpr int kStrideOfA = kRows + 4;
  static constexpr int kStrideOfB = kColumns + 4;
};

template <class T>
struct GemmShared {
  alignas(16) T a[GemmTile<T>::kDepth][GemmTile<T>::kStrideOfA];  // [term][row of C]
  alignas(16) T b[GemmTile<T>::kDepth][GemmTile<T>::kStrideOfB];  // [term][column of C]
};

// kLines lines of a slab in registers. Line l of op(X) has its kDepth terms at x(l, 0), x(l, 1) and
// so on. Adjacent threads read adjacent elements of memory.
template <class T, int kLines>
class SlabInRegisters {
 public:
  // `lines` and `terms` are the numbers available from x(0, 0) on; elements beyond them become
  // zero.
  __device__ void Load(const StridedMatrix<T>& x, int lines, int terms) {
    by_lines_ = x.row == 1;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int line = Line(e);
      const int term = Term(e);
      values_[e] = line < lines && term < terms ? x(line, term) : T{0};
    }
  }
  template <int kStride>
  __device__ void Store(T (&to)[GemmTile<T>::kDepth][kStride]) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) to[Term(e)][Line(e)] = values_[e];
  }

 private:
  static constexpr int kDepth = GemmTile<T>::kDepth;
  static constexpr int kEach = kLines * kDepth / kThreads;

  __device__ int Line(int e) const {
    const int i = static_cast<int>(threadIdx.x) + e * kThreads;
    return by_lines_ ? i % kLines : i / kDepth;
  }
  __device__ int Term(int e) const {
    const int i = static_cast<int>(threadIdx.x) + e * kThreads;
    return by_lines_ ? i / kLines : i % kDepth;
  }

  T values_[kEach];
  bool by_lines_;
};

template <class T>
using WarpSums = TileOfC<T>[GemmTile<T>::kStrips][GemmTile<T>::kTiles];

// sums += A B for the slab in shared memory.
template <class T>
__device__ void AddSlab(const GemmShared<T>& shared, int first_row, int first_column,
                        WarpSums<T>& sums) {
  using Tile = GemmTile<T>;
  const int g = TileGroup();
  const int t = TileThread();
#pragma unroll
  for (int s = 0; s < Tile::kDepth; s += 8) {
    TileOfB<T> b[Tile::kTiles];
#pragma unroll
    for (int j = 0; j < Tile::kTiles; ++j) {
      const int column = first_column + 8 * j + g;
      b[j] = {shared.b[s + t][column], shared.b[s + 4 + t][column]};
    }
#pragma unroll
    for (int i = 0; i < Tile::kStrips; ++i) {
      const int row = first_row + kTileRows * i + g;
      const TileOfA<T> a = {{{shared.a[s + t][row], shared.a[s + 4 + t][row]},
                             {shared.a[s + t][row + 8], shared.a[s + 4 + t][row + 8]}}};
#pragma unroll
      for (int j = 0; j < Tile::kTiles; ++j) AddTileProduct(a, b[j], sums[i][j]);
    }
  }
}

// C := alpha sums + beta C in this warp's part of the tile.
template <class T>
__device__ void StoreSums(const WarpSums<T>& sums, T alpha, T beta, const MatrixView<T>& c, int row,
                          int column) {
  using Tile = GemmTile<T>;
  const bool reads = beta != T{0};
#pragma unroll
  for (int i = 0; i < Tile::kStrips; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::kTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int at_row = row + kTileRows * i + e / 2 * 8 + TileGroup();
        const int at_column = column + 8 * j + 2 * TileThread() + e % 2;
        if (at_row >= c.rows || at_column >= c.cols) continue;
        T& to = c(at_row, at_column);
        const T product = alpha * sums[i][j].values[e];
        to = reads ? product + beta * to : product;
      }
    }
  }
}

// The product of one member.
template <class T>
struct MemberGemm {
  StridedMatrix<T> a;  // op(A)
  StridedMatrix<T> b;  // op(B)
  MatrixView<T> c;
  int k;
};

template <class T>
__device__ MemberGemm<T> GemmOf(const IrrGemm<T>& gemm, int32_t member) {
  const bool flips_a = gemm.op_a != Op::kNone;
  const bool flips_b = gemm.op_b != Op::kNone;
  const auto a = gemm.a.Local(member, flips_a ? gemm.k : gemm.m, flips_a ? gemm.m : gemm.k);
  const auto b = gemm.b.Local(member, flips_b ? gemm.n : gemm.k, flips_b ? gemm.k : gemm.n);
  MatrixView<T> c = gemm.c.Local(member, gemm.m, gemm.n);
  c.rows = min(c.rows, flips_a ? a.cols : a.rows);
  c.cols = min(c.cols, flips_b ? b.rows : b.cols);
  const auto k = static_cast<int>(min(flips_a ? a.rows : a.cols, flips_b ? b.cols : b.rows));
  return {OpOf(a, gemm.op_a), OpOf(b, gemm.op_b), c, k};
}

// Computes the tile of C that begins at (row, column). Called by all threads of a block.
template <class T>
__device__ void MultiplyGemmTile(const MemberGemm<T>& gemm, T alpha, T beta, int row, int column,
                                 GemmShared<T>& shared) {
  using Tile = GemmTile<T>;
  const StridedMatrix<T> lines_of_a = gemm.a.From(row, 0);
  const StridedMatrix<T> lines_of_b = gemm.b.From(0, column).Transposed();
  const int rows = static_cast<int>(gemm.c.rows) - row;
  const int columns = static_cast<int>(gemm.c.cols) - column;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int first_row = warp % 2 * Tile::kRows / 2;
  const int first_column = warp / 2 * Tile::kColumns / 2;
  SlabInRegisters<T, Tile::kRows> slab_of_a;
  SlabInRegisters<T, Tile::kColumns> slab_of_b;
  WarpSums<T> sums = {};
  slab_of_a.Load(lines_of_a, rows, gemm.k);
  slab_of_b.Load(lines_of_b, columns, gemm.k);
  for (int done = 0; done < gemm.k; done += Tile::kDepth) {
    slab_of_a.Store(shared.a);
    slab_of_b.Store(shared.b);
    __syncthreads();
    const int next = done + Tile::kDepth;
    if (next < gemm.k) {
      slab_of_a.Load(lines_of_a.From(0, next), rows, gemm.k - next);
      slab_of_b.Load(lines_of_b.From(0, next), columns, gemm.k - next);
    }
    AddSlab(shared, first_row, first_column, sums);
    __syncthreads();
  }
  StoreSums(sums, alpha, beta, gemm.c, row + first_row, column + first_column);
}

// One block per member and tile; a block handles several tiles if the grid is too small for all of
// them.
template <class T>
__global__ void __launch_bounds__(kThreads) IrrGemmKernel(IrrGemm<T> gemm, const int32_t* order) {
  using Tile = GemmTile<T>;
  GemmShared<T>& shared = SharedByBlock<GemmShared<T>>();
  const MemberGemm<T> of_member = GemmOf(gemm, order[blockIdx.x]);
  const int64_t rows = of_member.c.rows;
  const int64_t columns = of_member.c.cols;
  for (int64_t column = blockIdx.z * int64_t{Tile::kColumns}; column < columns;
       column += gridDim.z * int64_t{Tile::kColumns}) {
    for (int64_t row = blockIdx.y * int64_t{Tile::kRows}; row < rows;
         row += gridDim.y * int64_t{Tile::kRows}) {
      MultiplyGemmTile(of_member, gemm.alpha, gemm.beta, static_cast<int>(row),
                       static_cast<int>(column), shared);
    }
  }
}

}  // namespace

template <class T>
cudaError_t LaunchIrrGemm(const IrrGemm<T>& gemm, const IrrMembers& members, cudaStream_t stream) {
  using Tile = GemmTile<T>;
  if (gemm.m <= 0 || gemm.n <= 0 || members.count == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>(members.count), BlocksOf(gemm.m, Tile::kRows),
                  BlocksOf(gemm.n, Tile::kColumns));
  return LaunchDependent(IrrGemmKernel<T>, grid, kThreads, 0, false, stream, gemm, members.order);
}

template cudaError_t LaunchIrrGemm(const IrrGemm<float>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrGemm(const IrrGemm<double>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrGemm(const IrrGemm<Complex<float>>&, const IrrMembers&, cudaStream_t);
template cudaError_t LaunchIrrGemm(const IrrGemm<Complex<double>>&, const IrrMembers&,
                                   cudaStream_t);

}  // namespace crout::cuda
