// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/dense/factor_residual_kernels.h"

#include "kernels/cuda/device/scalar.cuh"

namespace crout {
namespace {

template <class T>
__global__ void SplitKernel(MatrixView<T> lu, MatrixView<T> u, bool unit_in_u) {
  const int64_t j = blockIdx.x;
  for (int64_t i = threadIdx.x; i < lu.rows; i += blockDim.x) {
    T& l = lu(i, j);
    u(i, j) = i < j || (i == j && !unit_in_u) ? l : T(i == j ? 1 : 0);
    if (i < j) l = T{0};
    if (i == j && !unit_in_u) l = T{1};
  }
}

template <class T>
__global__ void ColumnSumKernel(MatrixView<T> a, double* sums) {
  __shared__ double partial[256];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < a.rows; i += blockDim.x) sum += cuda::Modulus(a(i, blockIdx.x));
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int t = 1; t < 256; ++t) sum += partial[t];
  sums[blockIdx.x] = sum;
}

}  // namespace

template <class T>
cudaError_t LaunchSplit(const MatrixView<T>& lu, const MatrixView<T>& u, bool unit_in_u,
                        cudaStream_t stream) {
  SplitKernel<<<static_cast<unsigned>(lu.cols), 256, 0, stream>>>(lu, u, unit_in_u);
  return cudaGetLastError();
}

template <class T>
cudaError_t LaunchColumnSums(const MatrixView<T>& a, double* sums, cudaStream_t stream) {
  ColumnSumKernel<<<static_cast<unsigned>(a.cols), 256, 0, stream>>>(a, sums);
  return cudaGetLastError();
}

template cudaError_t LaunchSplit(const MatrixView<double>&, const MatrixView<double>&, bool,
                                 cudaStream_t);
template cudaError_t LaunchSplit(const MatrixView<cuda::Complex<double>>&,
                                 const MatrixView<cuda::Complex<double>>&, bool, cudaStream_t);
template cudaError_t LaunchColumnSums(const MatrixView<double>&, double*, cudaStream_t);
template cudaError_t LaunchColumnSums(const MatrixView<cuda::Complex<double>>&, double*,
                                      cudaStream_t);

}  // namespace crout
