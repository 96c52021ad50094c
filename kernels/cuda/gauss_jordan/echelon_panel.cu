// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/gauss_jordan/echelon_panel.cuh"

namespace crout::cuda {
namespace {

constexpr int kEchelonThreads = 256;

template <class T>
__global__ void __launch_bounds__(kEchelonThreads)
    SearchKernel(const __grid_constant__ EchelonPanel<T> panel, int64_t j) {
  SearchPivot<kEchelonThreads>(panel, j);
}

template <class T>
__global__ void __launch_bounds__(kEchelonThreads)
    EliminateKernel(const __grid_constant__ EchelonPanel<T> panel, int64_t j) {
  EliminateColumn<kEchelonThreads>(panel, j);
}

template <class T>
__global__ void __launch_bounds__(kEchelonThreads)
    RowsKernel(const __grid_constant__ EchelonPanel<T> panel) {
  ExtractPivotRows<kEchelonThreads>(panel);
}

unsigned BlocksFor(int64_t threads) {
  return static_cast<unsigned>((threads + kEchelonThreads - 1) / kEchelonThreads);
}

}  // namespace

template <class T>
cudaError_t LaunchEchelonPanel(const EchelonPanel<T>& panel, cudaStream_t stream) {
  for (int64_t j = panel.begin; j < panel.end; ++j) {
    SearchKernel<<<1, kEchelonThreads, 0, stream>>>(panel, j);
    EliminateKernel<<<BlocksFor(panel.a.rows), kEchelonThreads, 0, stream>>>(panel, j);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <class T>
cudaError_t LaunchEchelonRows(const EchelonPanel<T>& panel, cudaStream_t stream) {
  if (panel.end == panel.a.cols) return cudaSuccess;
  RowsKernel<<<BlocksFor(panel.a.cols - panel.end), kEchelonThreads, 0, stream>>>(panel);
  return cudaGetLastError();
}

template cudaError_t LaunchEchelonPanel(const EchelonPanel<float>&, cudaStream_t);
template cudaError_t LaunchEchelonPanel(const EchelonPanel<double>&, cudaStream_t);
template cudaError_t LaunchEchelonPanel(const EchelonPanel<Complex<float>>&, cudaStream_t);
template cudaError_t LaunchEchelonPanel(const EchelonPanel<Complex<double>>&, cudaStream_t);
template cudaError_t LaunchEchelonRows(const EchelonPanel<float>&, cudaStream_t);
template cudaError_t LaunchEchelonRows(const EchelonPanel<double>&, cudaStream_t);
template cudaError_t LaunchEchelonRows(const EchelonPanel<Complex<float>>&, cudaStream_t);
template cudaError_t LaunchEchelonRows(const EchelonPanel<Complex<double>>&, cudaStream_t);

}  // namespace crout::cuda
