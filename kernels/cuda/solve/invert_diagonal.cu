#include <algorithm>

#include "kernels/cuda/ops/dmma_tile.cuh"
#include "kernels/cuda/ops/load_if.cuh"
#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/cuda/solve/invert_diagonal.h"

namespace crout::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kLeaf = 32;   // rows of one step of substitution
constexpr int kStrip = 16;  // columns of an inverse for each block of threads
constexpr int kTiles = kStrip / kTileColumns;
constexpr int kHalves = kLeaf / kTileRows;        // tiles of a leaf's rows, one above the other
constexpr int kSharers = kWarps / kHalves;        // warps that share a tile's summation
constexpr int kStripPitch = kStrip + 4;           // fewer bank conflicts
constexpr int kColumnsPerWarp = kStrip / kWarps;  // of the leaf's substitution

// One diagonal block's triangle as a lower one: an upper one is read from its last element back.
template <class T>
struct Triangle {
  const T* data;
  int64_t ld;
  int sign;
  bool unit;
  int order;

  __device__ double operator()(int i, int k) const {
    if (i >= order) return i == k ? 1 : 0;
    if (i == k && unit) return 1;
    return static_cast<double>(data[sign * (i + k * ld)]);
  }
};

// The storage of the inverse, walked alike.
template <class T>
__device__ T* FirstOf(const MatrixView<T>& m, int64_t row, int64_t col, int order, bool lower) {
  return lower ? &m(row, col) : &m(row + order - 1, col + order - 1);
}

__device__ int OrderOf(int64_t begin, int64_t n, int64_t nb) {
  return static_cast<int>(min(nb, n - begin));
}

constexpr size_t kRowBytes = kStripPitch * sizeof(double);  // of the strip

struct Shared {
  double partial[kWarps][kTileRows * kStrip];
  double leaf[kLeaf][kLeaf + 1];
};

// x := leaf^-1 x for this warp's columns; lane i holds row i.
__device__ void SubstituteLeaf(const Shared& shared, double (&x)[kColumnsPerWarp]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const double diagonal = shared.leaf[lane][lane];
  const double reciprocal = 1 / diagonal;
#pragma unroll 8
  for (int j = 0; j < kLeaf; ++j) {
    const double factor = shared.leaf[lane][j];
#pragma unroll
    for (double& value : x) {
      // The rounded quotient, at two fused operations.
      double quotient = value * reciprocal;
      quotient = fma(fma(-quotient, diagonal, value), reciprocal, quotient);
      const double solved = __shfl_sync(kAllLanes, quotient, j);
      value = lane == j ? solved : (lane > j ? value - factor * solved : value);
    }
  }
}

// A block of threads finds 16 columns of one triangle's inverse, 32 rows at a time.
template <class T>
__global__ void __launch_bounds__(kThreads)
    InvertDiagonalKernel(MatrixView<const T> lu, bool unit_in_l, MatrixView<T> inverse) {
  extern __shared__ double strip[];  // rows x kStripPitch
  __shared__ Shared shared;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * inverse.cols;
  const int order = OrderOf(begin, lu.rows, inverse.cols);
  const bool lower = blockIdx.z == 0;
  const int sign = lower ? 1 : -1;
  const int c0 = static_cast<int>(blockIdx.x) * kStrip;
  if (c0 >= order) return;
  const Triangle<T> triangle = {FirstOf(lu, begin, begin, order, lower), lu.ld, sign,
                                lower == unit_in_l, order};
  T* const out = FirstOf(inverse, begin, 0, order, lower);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int half = warp / kSharers;
  const int start = c0 / kLeaf * kLeaf;  // rows above are zero
  for (int r0 = start; r0 < order; r0 += kLeaf) {
    TileSums<kTiles> sums = {};
    const T* rows[2];
    bool within[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int i = r0 + half * kTileRows + TileRow(2 * h);
      within[h] = i < order;
      rows[h] = triangle.data + sign * i;
    }
    MultiplyTile<kSharers, kTiles>(
        warp % kSharers, start, r0,
        [&](int h, int k) {
          return LoadConstantIf(within[h] && k < r0, rows[h] + sign * k * lu.ld);
        },
        [&](int j, int k) {
          return k < r0 ? strip[k * kStripPitch + j * kTileColumns + FragmentColumn()] : 0;
        },
        [] {}, sums);
    StoreTile<kTiles>(sums, false, shared.partial[warp]);
    for (int e = static_cast<int>(threadIdx.x); e < kLeaf * kLeaf; e += kThreads) {
      const int i = e % kLeaf;
      const int k = e / kLeaf;
      shared.leaf[i][k] = k <= i ? triangle(r0 + i, r0 + k) : 0;
    }
    __syncthreads();
    double x[kColumnsPerWarp];
#pragma unroll
    for (int v = 0; v < kColumnsPerWarp; ++v) {
      const int c = warp * kColumnsPerWarp + v;
      x[v] = r0 + lane == c0 + c ? 1 : 0;
      for (int w = 0; w < kSharers; ++w) {
        x[v] -= shared.partial[lane / kTileRows * kSharers + w][c * kTileRows + lane % kTileRows];
      }
    }
    SubstituteLeaf(shared, x);
#pragma unroll
    for (int v = 0; v < kColumnsPerWarp; ++v) {
      const int64_t i = r0 + lane;
      const int64_t k = c0 + warp * kColumnsPerWarp + v;
      strip[i * kStripPitch + k - c0] = x[v];
      const bool stored = k < i || (k == i && !triangle.unit);
      if (i < order && stored) out[sign * (i + k * inverse.ld)] = static_cast<T>(x[v]);
    }
    __syncthreads();
  }
}

// Row (or, transposed, column) `i` of |triangle| times `x`.
template <class T>
__device__ double AbsoluteRow(const Triangle<T>& triangle, bool transposed, int i,
                              const double* x) {
  double sum = 0;
  const int begin = transposed ? i : 0;
  const int end = transposed ? triangle.order : i + 1;
#pragma unroll 8
  for (int k = begin; k < end; ++k) {
    sum += fabs(transposed ? triangle(k, i) : triangle(i, k)) * x[k];
  }
  return sum;
}

// One block of threads for each diagonal block, triangle and side.
template <class T>
__global__ void __launch_bounds__(kMaxInvertedOrder)
    BlockConditionsKernel(MatrixView<const T> lu, bool unit_in_l, MatrixView<const T> inverse,
                          ReductionScratch* scratch, PreparationStats* report) {
  __shared__ double ones[kMaxInvertedOrder];
  __shared__ double sums[kMaxInvertedOrder];
  const int64_t begin = static_cast<int64_t>(blockIdx.x / 4) * inverse.cols;
  const int order = OrderOf(begin, lu.rows, inverse.cols);
  const bool lower = blockIdx.x % 2 == 0;
  const bool transposed = blockIdx.x % 4 >= 2;
  const bool unit = lower == unit_in_l;
  const int sign = lower ? 1 : -1;
  const int i = static_cast<int>(threadIdx.x);
  ones[i] = 1;
  __syncthreads();
  if (i < order) {
    const Triangle<T> triangle = {FirstOf(lu, begin, begin, order, lower), lu.ld, sign, unit,
                                  order};
    sums[i] = AbsoluteRow(triangle, transposed, i, ones);
  }
  __syncthreads();
  if (i < order) {
    const Triangle<T> inverted = {FirstOf(inverse, begin, 0, order, lower), inverse.ld, sign, unit,
                                  order};
    const double condition = AbsoluteRow(inverted, transposed, i, sums);
    atomicMax(&scratch->greatest[transposed ? 1 : 0], AbsBits(condition));
  }
  if (!IsLastBlock(scratch) || threadIdx.x != 0) return;
  report->condition = FromBits(Load(scratch->greatest[0]));
  report->transposed_condition = FromBits(Load(scratch->greatest[1]));
  Reset(scratch);
}

}  // namespace

size_t InvertDiagonalBytes(int64_t order) {
  return static_cast<size_t>((order + kLeaf - 1) / kLeaf) * kLeaf * kRowBytes;
}

int64_t MostInvertedOrder(const DeviceLimits& limits) {
  constexpr int64_t kUnit = 64;
  const auto rows = static_cast<int64_t>(limits.DynamicBytes(sizeof(Shared)) / kRowBytes);
  return std::min(rows / kUnit * kUnit, kMaxInvertedOrder);
}

template <class T>
cudaError_t LaunchInvertDiagonal(const MatrixView<const T>& lu, UnitDiagonal unit_diagonal,
                                 const MatrixView<T>& inverse, const DeviceLimits& limits,
                                 cudaStream_t stream) {
  if (lu.rows == 0) return cudaSuccess;
  const size_t shared_bytes = InvertDiagonalBytes(inverse.cols);
  // The same for every size: other threads may be about to launch with theirs.
  const auto most = static_cast<int>(InvertDiagonalBytes(MostInvertedOrder(limits)));
  const cudaError_t code = cudaFuncSetAttribute(InvertDiagonalKernel<T>,
                                                cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  if (code != cudaSuccess) return code;
  const dim3 grid(static_cast<unsigned>((inverse.cols + kStrip - 1) / kStrip),
                  static_cast<unsigned>((lu.rows + inverse.cols - 1) / inverse.cols), 2);
  InvertDiagonalKernel<T>
      <<<grid, kThreads, shared_bytes, stream>>>(lu, unit_diagonal == UnitDiagonal::kL, inverse);
  return cudaGetLastError();
}

template <class T>
cudaError_t LaunchBlockConditions(const MatrixView<const T>& lu, UnitDiagonal unit_diagonal,
                                  const MatrixView<const T>& inverse, ReductionScratch* scratch,
                                  PreparationStats* report, cudaStream_t stream) {
  if (lu.rows == 0) return cudaSuccess;
  const int64_t blocks = (lu.rows + inverse.cols - 1) / inverse.cols;
  BlockConditionsKernel<T><<<static_cast<unsigned>(4 * blocks), kMaxInvertedOrder, 0, stream>>>(
      lu, unit_diagonal == UnitDiagonal::kL, inverse, scratch, report);
  return cudaGetLastError();
}

template cudaError_t LaunchInvertDiagonal(const MatrixView<const float>&, UnitDiagonal,
                                          const MatrixView<float>&, const DeviceLimits&,
                                          cudaStream_t);
template cudaError_t LaunchInvertDiagonal(const MatrixView<const double>&, UnitDiagonal,
                                          const MatrixView<double>&, const DeviceLimits&,
                                          cudaStream_t);
template cudaError_t LaunchBlockConditions(const MatrixView<const float>&, UnitDiagonal,
                                           const MatrixView<const float>&, ReductionScratch*,
                                           PreparationStats*, cudaStream_t);
template cudaError_t LaunchBlockConditions(const MatrixView<const double>&, UnitDiagonal,
                                           const MatrixView<const double>&, ReductionScratch*,
                                           PreparationStats*, cudaStream_t);

}  // namespace crout::cuda
