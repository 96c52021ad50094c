// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/deferred_interchanges.h"

#include <algorithm>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/ops/permute_rows.h"

namespace crout::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kEach = 4;  // elements that a thread copies at a time
// About one column per multiprocessor: their copies stay in the L2 cache.
constexpr int64_t kColumnsAtOnce = 128;

int64_t Blocks(const PanelLayout& panels) {
  return (panels.columns + panels.block - 1) / panels.block;
}

// to[i] := from(i) for i in [begin, end). Each batch does all its loads before its stores.
template <class T, class From>
__device__ void Copy(int begin, int end, From from, T* to) {
  for (int first = begin + static_cast<int>(threadIdx.x); first < end; first += kEach * kThreads) {
    T values[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int i = first + e * kThreads;
      if (i < end) values[e] = from(i);
    }
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int i = first + e * kThreads;
      if (i < end) to[i] = values[e];
    }
  }
}

// A block of threads handles one column at a time: it copies the column and writes it back in the
// new order.
template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    PermuteColumnsKernel(MatrixView<T> a, PanelLayout panels, const int64_t* sources, T* copies,
                         const LuControl<T>* control) {
  if (control->halt != 0) return;
  const auto rows = static_cast<int>(a.rows);
  T* const copy = copies + blockIdx.x * a.rows;
  for (int64_t j = blockIdx.x;; j += gridDim.x) {
    const int64_t end = panels.EndOf(j);
    if (end == panels.columns) return;
    const auto begin = static_cast<int>(end);
    const int64_t* const source = sources + end / panels.block * a.rows;
    T* const column = &a(0, j);
    Copy(
        begin, rows, [&](int i) { return column[i]; }, copy);
    __syncthreads();
    Copy(
        begin, rows, [&](int i) { return copy[source[i]]; }, column);
    __syncthreads();
  }
}

}  // namespace

size_t DeferredInterchangesBytes(DType dtype, int64_t m, const PanelLayout& panels) {
  return m * (Blocks(panels) * sizeof(int64_t) + kColumnsAtOnce * SizeOf(dtype));
}

template <class T>
cudaError_t LaunchDeferredInterchanges(const MatrixView<T>& a, const int64_t* ipiv,
                                       const PanelLayout& panels, std::byte* workspace,
                                       const LuControl<T>* control, cudaStream_t stream) {
  if (panels.EndOf(0) == panels.columns) return cudaSuccess;
  // The copies come first, because they may need an alignment of more than 8 bytes.
  T* const copies = reinterpret_cast<T*>(workspace);
  auto* const sources = reinterpret_cast<int64_t*>(copies + kColumnsAtOnce * a.rows);
  if (const cudaError_t error =
          LaunchTraceInterchanges(ipiv, panels.columns, a.rows, panels.block, sources, stream);
      error != cudaSuccess) {
    return error;
  }
  const auto grid = static_cast<unsigned>(std::min(panels.columns, kColumnsAtOnce));
  PermuteColumnsKernel<<<grid, kThreads, 0, stream>>>(a, panels, sources, copies, control);
  return cudaGetLastError();
}

template cudaError_t LaunchDeferredInterchanges(const MatrixView<float>&, const int64_t*,
                                                const PanelLayout&, std::byte*,
                                                const LuControl<float>*, cudaStream_t);
template cudaError_t LaunchDeferredInterchanges(const MatrixView<double>&, const int64_t*,
                                                const PanelLayout&, std::byte*,
                                                const LuControl<double>*, cudaStream_t);

template cudaError_t LaunchDeferredInterchanges(const MatrixView<Complex<float>>&, const int64_t*,
                                                const PanelLayout&, std::byte*,
                                                const LuControl<Complex<float>>*, cudaStream_t);
template cudaError_t LaunchDeferredInterchanges(const MatrixView<Complex<double>>&, const int64_t*,
                                                const PanelLayout&, std::byte*,
                                                const LuControl<Complex<double>>*, cudaStream_t);

}  // namespace crout::cuda
