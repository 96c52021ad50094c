// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/ops/dmma_tile.cuh"
#include "kernels/cuda/ops/load_if.cuh"
#include "kernels/cuda/ops/product_by_parts.cuh"
#include "kernels/cuda/solve/block_product.h"

namespace crout::cuda {
namespace {

constexpr int kWarps = 16;
constexpr int kThreads = kWarps * 32;
constexpr int kHalf = kWarps / 2;

// One row of op(A) by parts. Columns outside of [begin, end) are zero, except for a unit diagonal.
template <class T>
struct BlockRow {
  const T* data;
  int begin, end;
  bool conjugate;

  __device__ double At(int k, int a_col) const {
    constexpr int kEach = kParts<T>;
    const bool stored = k >= begin && k < end;
    const double part = LoadConstantIf(stored, PartsOf(data + k / kEach * a_col) + k % kEach);
    return kIsComplex<T> && conjugate && k % kEach == 1 ? -part : part;
  }
};

template <class T>
__device__ BlockRow<T> RowOf(const BlockProduct<T>& p, int i) {
  constexpr int kEach = kParts<T>;
  const int depth = static_cast<int>(p.x.rows) * kEach;
  BlockRow<T> row = {p.a + i * p.a_row, 0, i < p.out.rows ? depth : 0, p.conjugate};
  const int diagonal = p.unit ? 0 : 1;
  if (p.shape == BlockShape::kLower) row.end = min(row.end, (i + diagonal) * kEach);
  if (p.shape == BlockShape::kUpper) row.begin = (i + 1 - diagonal) * kEach;
  return row;
}

// A block computes 16 rows of 8 kTiles columns, by parts. Its warps share the summation.
template <class T, int kTiles>
__global__ void __launch_bounds__(kThreads) BlockProductKernel(BlockProduct<T> p) {
  constexpr int kEach = kParts<T>;
  constexpr int kColumns = kTiles * kTileColumns;
  constexpr int kTile = kTileRows * kColumns;
  __shared__ double partial[kHalf][kTile];
  ReleaseDependentKernel();
  const int i0 = static_cast<int>(blockIdx.x) * kTileRows;
  const int c0 = static_cast<int>(blockIdx.y) * (kColumns / kEach);
  const int depth = static_cast<int>(p.x.rows) * kEach;
  const int begin = p.shape == BlockShape::kUpper ? i0 * kEach : 0;
  const int end = p.shape == BlockShape::kLower ? min(depth, (i0 + kTileRows) * kEach) : depth;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const BlockRow<T> rows[2] = {RowOf(p, i0 + TileRow(0)), RowOf(p, i0 + TileRow(2))};
  const int a_col = static_cast<int>(p.a_col);
  const T* columns[kTiles];  // null beyond the last column
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
    const int c = c0 + (j * kTileColumns + FragmentColumn()) / kEach;
    columns[j] = c < p.x.cols ? &p.x(0, c) : nullptr;
  }
  // The element part that this thread stores, and the value that it adds the product to.
  static_assert(kTile <= kThreads);
  const auto e = static_cast<int>(threadIdx.x);
  const int i = i0 + e % kTileRows;
  const int c = c0 + e / kTileRows / kEach;
  const int part = e / kTileRows % kEach;
  const bool stores = e < kTile && i < p.out.rows && c < p.out.cols;
  double before = 0;
  double sum = 0;
  TileSums<kTiles> sums = {};
  MultiplyTile<kWarps, kTiles>(
      warp, begin, end, [&](int half, int k) { return rows[half].At(k, a_col); },
      [&](int j, int k) {
        const int column = FragmentColumn();
        const T* x = columns[j] + k / kEach;
        return SignedPartOfX<T>(
            k, column,
            LoadFreshIf(k < end && columns[j] != nullptr, PartsOf(x) + PartOfX<T>(k, column)));
      },
      [&] {
        AwaitPreviousKernel();
        before = LoadFreshIf(stores && p.c.data != nullptr, PartsOf(&p.c(i, c)) + part);
        sum = LoadFreshIf(stores && p.unit, PartsOf(&p.x(i, c)) + part);
      },
      sums);
  if (warp >= kHalf) StoreTile<kTiles>(sums, false, partial[warp - kHalf]);
  __syncthreads();
  if (warp < kHalf) StoreTile<kTiles>(sums, true, partial[warp]);
  __syncthreads();
  if (!stores) return;
#pragma unroll
  for (int w = 0; w < kHalf; ++w) sum += partial[w][e];
  PartsOf(&p.out(i, c))[part] = static_cast<RealPart<T>>(p.subtract ? before - sum : before + sum);
}

template <class T, int kTiles>
cudaError_t Launch(const BlockProduct<T>& p, ProductStart start, cudaStream_t stream) {
  constexpr int kColumns = kTiles * kTileColumns / kParts<T>;
  const dim3 grid(static_cast<unsigned>((p.out.rows + kTileRows - 1) / kTileRows),
                  static_cast<unsigned>((p.out.cols + kColumns - 1) / kColumns));
  return LaunchDependent(BlockProductKernel<T, kTiles>, grid, kThreads, 0,
                         start == ProductStart::kEarly, stream, p);
}

}  // namespace

template <class T>
cudaError_t LaunchBlockProduct(const BlockProduct<T>& product, ProductStart start,
                               cudaStream_t stream) {
  // Tall products with many columns use more columns per block, so that all blocks run at once.
  constexpr int64_t kTall = 512;
  if (product.out.rows == 0 || product.out.cols == 0) return cudaSuccess;
  const int64_t columns = product.out.cols * kParts<T>;
  if (columns <= kTileColumns) return Launch<T, 1>(product, start, stream);
  if (columns <= 2 * kTileColumns || product.out.rows <= kTall) {
    return Launch<T, 2>(product, start, stream);
  }
  return Launch<T, 4>(product, start, stream);
}

template cudaError_t LaunchBlockProduct(const BlockProduct<float>&, ProductStart, cudaStream_t);
template cudaError_t LaunchBlockProduct(const BlockProduct<double>&, ProductStart, cudaStream_t);
template cudaError_t LaunchBlockProduct(const BlockProduct<Complex<float>>&, ProductStart,
                                        cudaStream_t);
template cudaError_t LaunchBlockProduct(const BlockProduct<Complex<double>>&, ProductStart,
                                        cudaStream_t);

}  // namespace crout::cuda
