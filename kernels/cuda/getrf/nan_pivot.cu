// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/getrf/nan_pivot.h"

namespace crout::cuda {
namespace {

template <class T>
__global__ void ClearNanPivotInfoKernel(MatrixView<const T> lu, int* info) {
  if (*info <= 0) return;
  const int64_t k = *info - 1;
  if (isnan(Abs1(lu(k, k)))) *info = 0;
}

}  // namespace

cudaError_t LaunchClearNanPivotInfo(const AnyMatrix& lu, int* info, cudaStream_t stream) {
  DispatchDevice(lu.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<const T> view{reinterpret_cast<const T*>(lu.data), lu.rows, lu.cols, lu.ld};
    ClearNanPivotInfoKernel<<<1, 1, 0, stream>>>(view, info);
  });
  return cudaGetLastError();
}

}  // namespace crout::cuda
