// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/matrix_kernels.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

constexpr int kPerThread = 4;  // elements of one column per thread
constexpr int64_t kMaxGridY = 65535;

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    ScaleColumnsKernel(const double* scales, MatrixView<T> w) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kBlockThreads * kPerThread + threadIdx.x;
  for (int64_t c = blockIdx.y; c < w.cols; c += gridDim.y) {
    const double scale = scales[c];
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int64_t i = first + k * kBlockThreads;
      if (i < w.rows) w(i, c) = w(i, c) * scale;
    }
  }
}

// One block per column.
template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    ColumnMaxAbsKernel(MatrixView<const T> w, double* most) {
  const int64_t c = blockIdx.x;
  double largest = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < w.rows; i += kBlockThreads) {
    largest = MaxKeepingNan(largest, Modulus(w(i, c)));
  }
  largest = BlockReduce(largest, Max());
  if (threadIdx.x == 0) most[c] = largest;
}

}  // namespace

cudaError_t LaunchScaleColumns(const double* scales, const AnyMatrix& w, cudaStream_t stream) {
  if (w.rows == 0 || w.cols == 0) return cudaSuccess;
  constexpr int64_t kRows = kBlockThreads * kPerThread;
  const dim3 grid(static_cast<unsigned>((w.rows + kRows - 1) / kRows),
                  static_cast<unsigned>(std::min(w.cols, kMaxGridY)));
  DispatchWide(w.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ScaleColumnsKernel<T><<<grid, kBlockThreads, 0, stream>>>(scales, w.As<T>());
  });
  return cudaGetLastError();
}

cudaError_t LaunchColumnMaxAbs(const AnyMatrix& w, double* most, cudaStream_t stream) {
  if (w.cols == 0) return cudaSuccess;
  DispatchWide(w.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<const T> view = w.As<const T>();
    ColumnMaxAbsKernel<T><<<static_cast<unsigned>(w.cols), kBlockThreads, 0, stream>>>(view, most);
  });
  return cudaGetLastError();
}

}  // namespace crout::cuda
