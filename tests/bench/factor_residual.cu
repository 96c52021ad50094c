#include "tests/bench/factor_residual_kernels.h"

namespace crout {
namespace {

__global__ void SplitKernel(MatrixView<double> lu, MatrixView<double> u, bool unit_in_u) {
  const int64_t j = blockIdx.x;
  for (int64_t i = threadIdx.x; i < lu.rows; i += blockDim.x) {
    double& l = lu(i, j);
    u(i, j) = i < j || (i == j && !unit_in_u) ? l : (i == j ? 1.0 : 0.0);
    if (i < j) l = 0;
    if (i == j && !unit_in_u) l = 1;
  }
}

__global__ void ColumnSumKernel(MatrixView<double> a, double* sums) {
  __shared__ double partial[256];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < a.rows; i += blockDim.x) sum += fabs(a(i, blockIdx.x));
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int t = 1; t < 256; ++t) sum += partial[t];
  sums[blockIdx.x] = sum;
}

}  // namespace

cudaError_t LaunchSplit(const MatrixView<double>& lu, const MatrixView<double>& u, bool unit_in_u,
                        cudaStream_t stream) {
  SplitKernel<<<static_cast<unsigned>(lu.cols), 256, 0, stream>>>(lu, u, unit_in_u);
  return cudaGetLastError();
}

cudaError_t LaunchColumnSums(const MatrixView<double>& a, double* sums, cudaStream_t stream) {
  ColumnSumKernel<<<static_cast<unsigned>(a.cols), 256, 0, stream>>>(a, sums);
  return cudaGetLastError();
}

}  // namespace crout
