// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/blocked/lu_control.h"

#include "kernels/cuda/device/complex.h"

namespace crout::cuda {
namespace {

template <class T>
__global__ void StartLuKernel(LuControl<T>* control) {
  *control = {T{-1}, T{1}, 0, 0};
}

}  // namespace

template <class T>
cudaError_t LaunchStartLu(LuControl<T>* control, cudaStream_t stream) {
  StartLuKernel<<<1, 1, 0, stream>>>(control);
  return cudaGetLastError();
}

template cudaError_t LaunchStartLu(LuControl<float>*, cudaStream_t);
template cudaError_t LaunchStartLu(LuControl<double>*, cudaStream_t);
template cudaError_t LaunchStartLu(LuControl<Complex<float>>*, cudaStream_t);
template cudaError_t LaunchStartLu(LuControl<Complex<double>>*, cudaStream_t);

}  // namespace crout::cuda
