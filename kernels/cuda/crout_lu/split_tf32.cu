#include "kernels/cuda/crout_lu/split_tf32.h"

#include <algorithm>

#include "kernels/cuda/device/complex.h"

namespace crout::cuda {
namespace {

constexpr int kTile = 32;  // rows and columns that a block takes
constexpr int kLines = 8;  // of a tile at once
constexpr int64_t kMaxGridY = 65535;
constexpr unsigned kKept = 0xffffe000U;  // the bits of a TF32 number

__device__ float HighOf(float x) { return __uint_as_float(__float_as_uint(x) & kKept); }
// What is left has 13 bits; half of the last kept one rounds it.
__device__ float LowOf(float x) {
  return __uint_as_float((__float_as_uint(x - HighOf(x)) + 0x1000U) & kKept);
}
__device__ Complex<float> HighOf(const Complex<float>& x) { return {HighOf(x.re), HighOf(x.im)}; }
__device__ Complex<float> LowOf(const Complex<float>& x) { return {LowOf(x.re), LowOf(x.im)}; }

template <class T>
__global__ void __launch_bounds__(kTile* kLines)
    SplitTf32Kernel(MatrixView<T> a, Tf32Parts<T> parts, const LuControl<T>* control) {
  __shared__ T tile[kTile][kTile + 1];
  if (BlockHalted(control)) return;
  const int across = static_cast<int>(threadIdx.x) % kTile;
  const int down = static_cast<int>(threadIdx.x) / kTile;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kTile;
  for (int64_t first = int64_t{blockIdx.y} * kTile; first < a.cols;
       first += int64_t{gridDim.y} * kTile) {
#pragma unroll
    for (int c = down; c < kTile; c += kLines) {
      const int64_t i = first_row + across;
      const int64_t j = first + c;
      if (i < a.rows && j < a.cols) tile[c][across] = a(i, j);
    }
    __syncthreads();
#pragma unroll
    for (int r = down; r < kTile; r += kLines) {
      const int64_t i = first_row + r;
      const int64_t j = first + across;
      if (i >= a.rows || j >= a.cols) continue;
      const T x = tile[across][r];
      const T high = HighOf(x);
      parts.high(j, i) = high;
      parts.high_again(j, i) = high;
      parts.low(j, i) = LowOf(x);
    }
    __syncthreads();
  }
}

}  // namespace

template <class T>
cudaError_t LaunchSplitTf32(const MatrixView<T>& a, const Tf32Parts<T>& parts,
                            const LuControl<T>* control, cudaStream_t stream) {
  if (a.rows == 0 || a.cols == 0) return cudaSuccess;
  const auto tiles = [](int64_t count) { return (count + kTile - 1) / kTile; };
  const dim3 grid(static_cast<unsigned>(tiles(a.rows)),
                  static_cast<unsigned>(std::min(tiles(a.cols), kMaxGridY)));
  SplitTf32Kernel<<<grid, kTile * kLines, 0, stream>>>(a, parts, control);
  return cudaGetLastError();
}

template cudaError_t LaunchSplitTf32(const MatrixView<float>&, const Tf32Parts<float>&,
                                     const LuControl<float>*, cudaStream_t);
template cudaError_t LaunchSplitTf32(const MatrixView<Complex<float>>&,
                                     const Tf32Parts<Complex<float>>&,
                                     const LuControl<Complex<float>>*, cudaStream_t);

}  // namespace crout::cuda
