#include "kernels/cuda/solve_tile.h"

#include "kernels/cuda/reduction.cuh"

namespace crout {
namespace {

constexpr int kTile = static_cast<int>(kMaxTile);
constexpr int kWarps = 2;

// Element (i, j) at data[i * row + j * col].
template <class T>
struct Strided {
  T* data;
  int64_t row;
  int64_t col;

  __device__ T& operator()(int64_t i, int64_t j) const { return data[i * row + j * col]; }
};

// Substitution forwards with a lower triangle, one system in each thread. t[k][i] is the triangle's
// element (i, k); beyond its order it is the identity.
template <bool kUnit, class T>
__device__ void Forward(const T (&t)[kTile][kTile], T (&x)[kTile]) {
#pragma unroll
  for (int k = 0; k < kTile; ++k) {
    if (!kUnit) x[k] = t[k][k] == 0 ? T{0} : x[k] / t[k][k];
#pragma unroll
    for (int i = k + 1; i < kTile; ++i) x[i] -= t[k][i] * x[k];
  }
}

// Every kind of solve is a lower triangle's: an upper one is read backwards (both axes of the
// strides are reversed), one from the right transposed.
template <bool kUnit, class T>
__global__ void __launch_bounds__(kWarps * kWarp)
    SolveTileKernel(Strided<const T> triangle, int order, Strided<T> b, int64_t systems,
                    const LuControl<T>* control) {
  __shared__ T t[kTile][kTile];
  __shared__ T staging[kWarps][kTile][kTile + 1];
  if (control->halt != 0) return;
  for (int e = threadIdx.x; e < kTile * kTile; e += kWarps * kWarp) {
    const int i = e % kTile;
    const int k = e / kTile;
    t[k][i] = i >= k && i < order ? triangle(i, k) : (i == k ? T{1} : T{0});
  }
  __syncthreads();
  const int lane = threadIdx.x % kWarp;
  T(&tile)[kTile][kTile + 1] = staging[threadIdx.x / kWarp];
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp) * kWarp;
  const int here = static_cast<int>(min(int64_t{kWarp}, systems - first));
  if (here <= 0) return;
  T x[kTile];
  // Neighbouring threads read neighbouring elements; where those are of one system, through shared
  // memory.
  const bool transpose = b.col != 1;
  if (transpose) {
    for (int s = 0; s < here; ++s) tile[s][lane] = lane < order ? b(lane, first + s) : T{0};
    __syncwarp();
  }
#pragma unroll
  for (int i = 0; i < kTile; ++i) {
    const bool real = i < order && lane < here;
    x[i] = !real ? T{0} : transpose ? tile[lane][i] : b(i, first + lane);
  }
  Forward<kUnit>(t, x);
#pragma unroll
  for (int i = 0; i < kTile; ++i) {
    if (transpose) {
      tile[lane][i] = x[i];
    } else if (i < order && lane < here) {
      b(i, first + lane) = x[i];
    }
  }
  if (!transpose) return;
  __syncwarp();
  for (int s = 0; s < here; ++s) {
    if (lane < order) b(lane, first + s) = tile[s][lane];
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
  constexpr int64_t kPerBlock = kWarps * kWarp;
  const auto blocks = static_cast<unsigned>((systems + kPerBlock - 1) / kPerBlock);
  const auto kernel = unit ? SolveTileKernel<true, T> : SolveTileKernel<false, T>;
  kernel<<<blocks, kPerBlock, 0, stream>>>(triangle, static_cast<int>(tile.rows), unknowns, systems,
                                           control);
  return cudaGetLastError();
}

template cudaError_t LaunchSolveTile(TileSolve, const MatrixView<float>&, const MatrixView<float>&,
                                     const LuControl<float>*, cudaStream_t);
template cudaError_t LaunchSolveTile(TileSolve, const MatrixView<double>&,
                                     const MatrixView<double>&, const LuControl<double>*,
                                     cudaStream_t);

}  // namespace crout
