// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/dmma_tile.cuh"
#include "kernels/cuda/ops/load_if.cuh"
#include "kernels/cuda/ops/product_by_parts.cuh"
#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/cuda/solve/invert_diagonal.h"

namespace crout::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kLeaf = 32;   // rows per step of substitution
constexpr int kStrip = 16;  // columns of an inverse, by parts, per block of threads
constexpr int kTiles = kStrip / kTileColumns;
constexpr int kHalves = kLeaf / kTileRows;  // tiles of a leaf's rows
constexpr int kSharers = kWarps / kHalves;  // warps that share the summation of a tile
constexpr int kStripPitch = kStrip + 4;     // reduces bank conflicts

// Columns of T in a strip, and columns per warp in the substitution with a leaf.
template <class T>
constexpr int kStripColumns = kStrip / kParts<T>;
template <class T>
constexpr int kColumnsPerWarp = kStripColumns<T> / kWarps;

// The triangle of one diagonal block as a lower triangle; an upper one is read in reverse from its
// last element.
template <class T>
struct Triangle {
  const T* data;
  int64_t ld;
  int sign;
  bool unit;
  int order;

  __device__ WideType<T> operator()(int i, int k) const {
    if (i >= order) return i == k ? 1 : 0;
    if (i == k && unit) return 1;
    return static_cast<WideType<T>>(data[sign * (i + k * ld)]);
  }
};

// The first element of the inverse's storage, for the same order of access.
template <class T>
__device__ T* FirstOf(const MatrixView<T>& m, int64_t row, int64_t col, int order, bool lower) {
  return lower ? &m(row, col) : &m(row + order - 1, col + order - 1);
}

__device__ int OrderOf(int64_t begin, int64_t n, int64_t nb) {
  return static_cast<int>(min(nb, n - begin));
}

constexpr size_t kRowBytes = kStripPitch * sizeof(double);  // per row of the strip

template <class T>
struct Shared {
  double partial[kWarps][kTileRows * kStrip];
  WideType<T> leaf[kLeaf][kLeaf + 1];
};

// value / diagonal by the reciprocal of the diagonal. For real numbers this is the correctly
// rounded quotient, for two more fused operations.
__device__ double Quotient(double value, double reciprocal, double diagonal) {
  const double quotient = value * reciprocal;
  return fma(fma(-quotient, diagonal, value), reciprocal, quotient);
}
__device__ Complex<double> Quotient(const Complex<double>& value, const Complex<double>& reciprocal,
                                    const Complex<double>& diagonal) {
  const Complex<double> quotient = value * reciprocal;
  return PlusProduct(quotient, MinusProduct(value, quotient, diagonal), reciprocal);
}

// x := leaf^-1 x for this warp's columns. Lane i holds row i.
template <class T>
__device__ void SubstituteLeaf(const Shared<T>& shared, WideType<T> (&x)[kColumnsPerWarp<T>]) {
  using Wide = WideType<T>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Wide diagonal = shared.leaf[lane][lane];
  const Wide reciprocal = Wide(1) / diagonal;
#pragma unroll 8
  for (int j = 0; j < kLeaf; ++j) {
    const Wide factor = shared.leaf[lane][j];
#pragma unroll
    for (Wide& value : x) {
      const Wide solved = Shuffle(Quotient(value, reciprocal, diagonal), j);
      value = lane == j ? solved : (lane > j ? MinusProduct(value, factor, solved) : value);
    }
  }
}

// x := x - the warps' partial sums for element (i, c) of a leaf's rows.
template <class T>
__device__ WideType<T> MinusPartialSums(const Shared<T>& shared, int i, int c, WideType<T> x) {
  for (int w = 0; w < kSharers; ++w) {
    const double* sums = shared.partial[i / kTileRows * kSharers + w];
    const auto at = [&](int part) {
      return sums[(c * kParts<T> + part) * kTileRows + i % kTileRows];
    };
    if constexpr (kIsComplex<T>) {
      x -= {at(0), at(1)};
    } else {
      x -= at(0);
    }
  }
  return x;
}

// Multiplies the solved rows [start, r0) of the strip by the triangle's rows from r0 on. Stores
// this warp's share in `partial`.
template <class T>
__device__ void MultiplySolved(const Triangle<T>& triangle, const double* strip, int start, int r0,
                               Shared<T>& shared) {
  constexpr int kEach = kParts<T>;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int half = warp / kSharers;
  const int end = r0 * kEach;
  const T* rows[2];
  bool within[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int i = r0 + half * kTileRows + TileRow(2 * h);
    within[h] = i < triangle.order;
    rows[h] = triangle.data + triangle.sign * i;
  }
  TileSums<kTiles> sums = {};
  MultiplyTile<kSharers, kTiles>(
      warp % kSharers, start * kEach, end,
      [&](int h, int k) {
        return LoadConstantIf(
            within[h] && k < end,
            PartsOf(rows[h] + triangle.sign * (k / kEach) * triangle.ld) + k % kEach);
      },
      [&](int j, int k) -> double {
        if (k >= end) return 0;
        const int column = j * kTileColumns + FragmentColumn();
        const int part = column / kEach * kEach + PartOfX<T>(k, column);
        return SignedPartOfX<T>(k, column, strip[k / kEach * kStripPitch + part]);
      },
      [] {}, sums);
  StoreTile<kTiles>(sums, false, shared.partial[warp]);
}

// A block of threads computes a strip of one triangle's inverse, 32 rows at a time.
template <class T>
__global__ void __launch_bounds__(kThreads)
    InvertDiagonalKernel(MatrixView<const T> lu, bool unit_in_l, MatrixView<T> inverse) {
  extern __shared__ double strip[];  // rows x kStripPitch
  __shared__ Shared<T> shared;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * inverse.cols;
  const int order = OrderOf(begin, lu.rows, inverse.cols);
  const bool lower = blockIdx.z == 0;
  const int sign = lower ? 1 : -1;
  const int c0 = static_cast<int>(blockIdx.x) * kStripColumns<T>;
  if (c0 >= order) return;
  const Triangle<T> triangle = {FirstOf(lu, begin, begin, order, lower), lu.ld, sign,
                                lower == unit_in_l, order};
  T* const out = FirstOf(inverse, begin, 0, order, lower);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int start = c0 / kLeaf * kLeaf;  // rows above are zero
  for (int r0 = start; r0 < order; r0 += kLeaf) {
    MultiplySolved(triangle, strip, start, r0, shared);
    for (int e = static_cast<int>(threadIdx.x); e < kLeaf * kLeaf; e += kThreads) {
      const int i = e % kLeaf;
      const int k = e / kLeaf;
      shared.leaf[i][k] = k <= i ? triangle(r0 + i, r0 + k) : 0;
    }
    __syncthreads();
    WideType<T> x[kColumnsPerWarp<T>];
#pragma unroll
    for (int v = 0; v < kColumnsPerWarp<T>; ++v) {
      const int c = warp * kColumnsPerWarp<T> + v;
      x[v] = MinusPartialSums(shared, lane, c, r0 + lane == c0 + c ? 1 : 0);
    }
    SubstituteLeaf(shared, x);
#pragma unroll
    for (int v = 0; v < kColumnsPerWarp<T>; ++v) {
      const int64_t i = r0 + lane;
      const int64_t c = warp * kColumnsPerWarp<T> + v;
      const int64_t k = c0 + c;
#pragma unroll
      for (int part = 0; part < kParts<T>; ++part) {
        strip[i * kStripPitch + c * kParts<T> + part] = PartsOf(&x[v])[part];
      }
      const bool stored = k < i || (k == i && !triangle.unit);
      if (i < order && stored) out[sign * (i + k * inverse.ld)] = static_cast<T>(x[v]);
    }
    __syncthreads();
  }
}

// Row `i` of |triangle| (or column `i`, if `transposed`) times `x`.
template <class T>
__device__ double AbsoluteRow(const Triangle<T>& triangle, bool transposed, int i,
                              const double* x) {
  double sum = 0;
  const int begin = transposed ? i : 0;
  const int end = transposed ? triangle.order : i + 1;
#pragma unroll 8
  for (int k = begin; k < end; ++k) {
    sum += Modulus(transposed ? triangle(k, i) : triangle(i, k)) * x[k];
  }
  return sum;
}

// One block of threads per diagonal block, triangle and side.
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

int64_t MaxInvertedOrder(DType dtype, const DeviceLimits& limits) {
  constexpr int64_t kUnit = 64;
  const size_t beside = IsComplex(dtype) ? sizeof(Shared<Complex<double>>) : sizeof(Shared<double>);
  const auto rows = static_cast<int64_t>(limits.DynamicBytes(beside) / kRowBytes);
  return std::min(rows / kUnit * kUnit, kMaxInvertedOrder);
}

template <class T>
cudaError_t LaunchInvertDiagonal(const MatrixView<const T>& lu, UnitDiagonal unit_diagonal,
                                 const MatrixView<T>& inverse, const DeviceLimits& limits,
                                 cudaStream_t stream) {
  if (lu.rows == 0) return cudaSuccess;
  const size_t shared_bytes = InvertDiagonalBytes(inverse.cols);
  // The same value for every size, because other threads may be about to launch with theirs.
  const auto most = static_cast<int>(InvertDiagonalBytes(MaxInvertedOrder(kDTypeOf<T>, limits)));
  const cudaError_t code = cudaFuncSetAttribute(InvertDiagonalKernel<T>,
                                                cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  if (code != cudaSuccess) return code;
  const dim3 grid(static_cast<unsigned>((inverse.cols + kStripColumns<T> - 1) / kStripColumns<T>),
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

#define CROUT_INSTANTIATE(T)                                                                \
  template cudaError_t LaunchInvertDiagonal(const MatrixView<const T>&, UnitDiagonal,       \
                                            const MatrixView<T>&, const DeviceLimits&,      \
                                            cudaStream_t);                                  \
  template cudaError_t LaunchBlockConditions(const MatrixView<const T>&, UnitDiagonal,      \
                                             const MatrixView<const T>&, ReductionScratch*, \
                                             PreparationStats*, cudaStream_t)
CROUT_INSTANTIATE(float);
CROUT_INSTANTIATE(double);
CROUT_INSTANTIATE(Complex<float>);
CROUT_INSTANTIATE(Complex<double>);
#undef CROUT_INSTANTIATE

}  // namespace crout::cuda
