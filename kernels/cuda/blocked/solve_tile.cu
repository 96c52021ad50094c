// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/blocked/tiles.h"

#include <limits>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kSystems = 4;  // per warp

// Element (i, j) at data[i * row + j * col].
template <class T>
struct Strided {
  T* data;
  int64_t row;
  int64_t col;

  __device__ T& operator()(int64_t i, int64_t j) const { return data[i * row + j * col]; }
};

// A lower triangle. columns[k][i] is its element (i, k) below the diagonal, else 0. Beyond its
// order, the triangle is extended by the identity.
template <class T, int kTile>
struct Triangle {
  T columns[kTile][kTile];
  T diagonal[kTile];
  T reciprocals[kTile];  // reciprocals of the diagonal
};

// Returns whether the reciprocals can be used: all are in the normal range.
template <class T, int kTile>
__device__ bool Load(const Strided<const T>& from, int order, bool unit, Triangle<T, kTile>& t) {
  constexpr int kEach = kTile * kTile / (kWarps * kWarp);
  T elements[kEach];  // all loads precede the first use
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int index = e * kWarps * kWarp + threadIdx.x;
    const int i = index % kTile;
    const int k = index / kTile;
    elements[e] = i > k && i < order ? from(i, k) : T{0};
  }
  bool normal = true;
  if (threadIdx.x < kTile) {
    const int k = threadIdx.x;
    const T diagonal = unit || k >= order ? T{1} : from(k, k);
    t.diagonal[k] = diagonal;
    t.reciprocals[k] = T{1} / diagonal;
    const RealPart<T> size = Abs1(t.reciprocals[k]);
    normal = size >= std::numeric_limits<RealPart<T>>::min() &&
             size <= std::numeric_limits<RealPart<T>>::max();
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int index = e * kWarps * kWarp + threadIdx.x;
    t.columns[index / kTile][index % kTile] = elements[e];
  }
  return __syncthreads_and(normal) != 0;
}

// Forward substitution in a warp's systems; a lane holds every 32nd unknown of each. kDivide: use
// divisions, which take most of a solve's time. They are needed if a diagonal element is zero or
// has no accurate reciprocal.
template <bool kDivide, class T, int kTile>
__device__ void Substitute(const Triangle<T, kTile>& t, T (&x)[kSystems][kTile / kWarp]) {
  constexpr int kParts = kTile / kWarp;
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll 1
    for (int step = 0; step < kWarp; ++step) {
      const int k = part * kWarp + step;
      T l[kParts];
#pragma unroll
      for (int p = part; p < kParts; ++p) l[p] = t.columns[k][p * kWarp + lane];
#pragma unroll
      for (int s = 0; s < kSystems; ++s) {
        T value = Shuffle(x[s][part], step);
        if (!kDivide) {
          value *= t.reciprocals[k];
        } else {
          value = t.diagonal[k] == T{0} ? T{0} : value / t.diagonal[k];
        }
        if (lane == step) x[s][part] = value;
#pragma unroll
        for (int p = part; p < kParts; ++p) x[s][p] = MinusProduct(x[s][p], l[p], value);
      }
    }
  }
}

// Every solve is expressed as a solve with a lower triangle. An upper triangle is read in reverse
// (both strides are negated), and a solve from the right is transposed. A warp handles kSystems
// systems.
template <class T, int kTile>
__global__ void __launch_bounds__(kWarps* kWarp)
    SolveTileKernel(Strided<const T> triangle, bool unit, int order, Strided<T> b, int64_t systems,
                    const LuControl<T>* control) {
  constexpr int kParts = kTile / kWarp;
  __shared__ Triangle<T, kTile> t;
  if (BlockHalted(control)) return;
  const bool normal = Load(triangle, order, unit, t);
  const int lane = threadIdx.x % kWarp;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const int64_t first = warp * kSystems;
  T x[kSystems][kParts];
#pragma unroll
  for (int s = 0; s < kSystems; ++s) {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const int i = p * kWarp + lane;
      x[s][p] = i < order && first + s < systems ? b(i, first + s) : T{0};
    }
  }
  if (normal) {
    Substitute<false>(t, x);
  } else {
    Substitute<true>(t, x);
  }
#pragma unroll
  for (int s = 0; s < kSystems; ++s) {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const int i = p * kWarp + lane;
      if (i < order && first + s < systems) b(i, first + s) = x[s][p];
    }
  }
}

}  // namespace

template <class T>
cudaError_t LaunchSolveTile(TileSolve solve, const MatrixView<T>& tile, const MatrixView<T>& b,
                            const LuControl<T>* control, cudaStream_t stream) {
  Strided<const T> triangle = {tile.data, 1, tile.ld};
  Strided<T> unknowns = {b.data, 1, b.ld};
  int64_t systems = b.cols;
  if (solve == TileSolve::kUnitUpper) {
    triangle = {&tile(tile.rows - 1, tile.rows - 1), -1, -tile.ld};
    unknowns = {b.data + tile.rows - 1, -1, b.ld};
  } else if (solve == TileSolve::kUpperFromRight) {
    triangle = {tile.data, tile.ld, 1};
    unknowns = {b.data, b.ld, 1};
    systems = b.rows;
  }
  if (systems == 0) return cudaSuccess;
  const bool unit = solve == TileSolve::kUnitLower || solve == TileSolve::kUnitUpper;
  constexpr int64_t kPerBlock = kWarps * kSystems;
  const auto blocks = static_cast<unsigned>((systems + kPerBlock - 1) / kPerBlock);
  const auto kernel = tile.rows <= 32 ? SolveTileKernel<T, 32>
                                      : SolveTileKernel<T, static_cast<int>(kMaxSolveTile<T>)>;
  kernel<<<blocks, kWarps * kWarp, 0, stream>>>(triangle, unit, static_cast<int>(tile.rows),
                                                unknowns, systems, control);
  return cudaGetLastError();
}

template cudaError_t LaunchSolveTile(TileSolve, const MatrixView<float>&, const MatrixView<float>&,
                                     const LuControl<float>*, cudaStream_t);
template cudaError_t LaunchSolveTile(TileSolve, const MatrixView<double>&,
                                     const MatrixView<double>&, const LuControl<double>*,
                                     cudaStream_t);
template cudaError_t LaunchSolveTile(TileSolve, const MatrixView<Complex<float>>&,
                                     const MatrixView<Complex<float>>&,
                                     const LuControl<Complex<float>>*, cudaStream_t);
template cudaError_t LaunchSolveTile(TileSolve, const MatrixView<Complex<double>>&,
                                     const MatrixView<Complex<double>>&,
                                     const LuControl<Complex<double>>*, cudaStream_t);

}  // namespace crout::cuda
