// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/split_tf32.h"

#include <algorithm>

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/shared_memory.cuh"

namespace crout::cuda {
namespace {

constexpr int kTile = 32;  // rows and columns per block
constexpr int kLines = 8;  // lines of a tile at a time
constexpr int64_t kMaxGridY = 65535;
constexpr unsigned kKept = 0xffffe000U;  // the bits that TF32 keeps

__device__ float HighOf(float x) { return __uint_as_float(__float_as_uint(x) & kKept); }
// The remainder has 13 bits. Adding half of the last kept bit rounds it.
__device__ float LowOf(float x) {
  return __uint_as_float((__float_as_uint(x - HighOf(x)) + 0x1000U) & kKept);
}

// The matrix to split: a real matrix itself, or the real matrix that represents a complex one.
struct RealMatrix {
  MatrixView<float> a;

  __device__ int64_t rows() const { return a.rows; }
  __device__ int64_t cols() const { return a.cols; }
  __device__ float operator()(int64_t i, int64_t j) const { return a(i, j); }
};
struct ComplexAsReal {
  MatrixView<Complex<float>> a;

  __device__ int64_t rows() const { return 2 * a.rows; }
  __device__ int64_t cols() const { return 2 * a.cols; }
  __device__ float operator()(int64_t i, int64_t j) const {
    const Complex<float>& x = a(i / 2, j / 2);
    if (i % 2 == j % 2) return x.re;
    return i % 2 == 0 ? -x.im : x.im;
  }
};

struct Tile {
  float elements[kTile][kTile + 1];
};

template <class Matrix, class T>
__global__ void __launch_bounds__(kTile* kLines)
    SplitTf32Kernel(Matrix a, Tf32Parts parts, const LuControl<T>* control) {
  auto& tile = SharedByBlock<Tile>().elements;
  if (BlockHalted(control)) return;
  const int across = static_cast<int>(threadIdx.x) % kTile;
  const int down = static_cast<int>(threadIdx.x) / kTile;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kTile;
  for (int64_t first = int64_t{blockIdx.y} * kTile; first < a.cols();
       first += int64_t{gridDim.y} * kTile) {
#pragma unroll
    for (int c = down; c < kTile; c += kLines) {
      const int64_t i = first_row + across;
      const int64_t j = first + c;
      if (i < a.rows() && j < a.cols()) tile[c][across] = a(i, j);
    }
    __syncthreads();
#pragma unroll
    for (int r = down; r < kTile; r += kLines) {
      const int64_t i = first_row + r;
      const int64_t j = first + across;
      if (i >= a.rows() || j >= a.cols()) continue;
      const float x = tile[across][r];
      const float high = HighOf(x);
      parts.high(j, i) = high;
      parts.high_copy(j, i) = high;
      parts.low(j, i) = LowOf(x);
    }
    __syncthreads();
  }
}

// Launches with the shape of `parts`.
template <class Matrix, class T>
cudaError_t Launch(const Matrix& a, const Tf32Parts& parts, const LuControl<T>* control,
                   cudaStream_t stream) {
  const int64_t rows = parts.high.cols;
  const int64_t columns = parts.high.rows;
  if (rows == 0 || columns == 0) return cudaSuccess;
  const auto tiles = [](int64_t count) { return (count + kTile - 1) / kTile; };
  const dim3 grid(static_cast<unsigned>(tiles(rows)),
                  static_cast<unsigned>(std::min(tiles(columns), kMaxGridY)));
  return LaunchDependent(SplitTf32Kernel<Matrix, T>, grid, kTile * kLines, 0, false, stream, a,
                         parts, control);
}

}  // namespace

template <class T>
cudaError_t LaunchSplitTf32(const MatrixView<float>& a, const Tf32Parts& parts,
                            const LuControl<T>* control, cudaStream_t stream) {
  return Launch(RealMatrix{a}, parts, control, stream);
}

cudaError_t LaunchSplitTf32(const MatrixView<Complex<float>>& a, const Tf32Parts& parts,
                            const LuControl<Complex<float>>* control, cudaStream_t stream) {
  return Launch(ComplexAsReal{a}, parts, control, stream);
}

template cudaError_t LaunchSplitTf32(const MatrixView<float>&, const Tf32Parts&,
                                     const LuControl<float>*, cudaStream_t);
template cudaError_t LaunchSplitTf32(const MatrixView<float>&, const Tf32Parts&,
                                     const LuControl<Complex<float>>*, cudaStream_t);

}  // namespace crout::cuda
