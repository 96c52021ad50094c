// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/matrix_kernels.h"
#include "kernels/cuda/ops/permute_rows.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

// The block's sum of `column` times z over [begin, end). z is computed on the fly, which is cheaper
// than loading it. Valid in thread 0. `p` permutes z; null means the identity.
template <class T>
__device__ WideType<T> WeightedSum(const T* column, int64_t begin, int64_t end, const int64_t* p,
                                   double scale) {
  WideType<T> sum = 0;
#pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += kBlockThreads) {
    sum += ToFloat64(column[i]) * (ProbeWeight(p == nullptr ? i : p[i]) * scale);
  }
  return BlockReduce(sum, Sum());
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    ProbeMatrixKernel(MatrixView<const T> a, double scale, WideType<T>* products) {
  const int64_t j = blockIdx.x;
  const WideType<T> sum = WeightedSum(&a(0, j), 0, a.rows, nullptr, scale);
  if (threadIdx.x == 0) products[j] = sum;
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    ProbeLowerKernel(MatrixView<const T> lu, bool unit_in_u, const int64_t* p, double scale,
                     WideType<T>* products) {
  const int64_t k = blockIdx.x;
  const WideType<T> below = WeightedSum(&lu(0, k), k + 1, lu.rows, p, scale);
  if (threadIdx.x != 0) return;
  const double z = ProbeWeight(p == nullptr ? k : p[k]) * scale;
  products[k] = (unit_in_u ? ToFloat64(lu(k, k)) * z : WideType<T>(z)) + below;
}

}  // namespace

cudaError_t LaunchProbeMatrix(const AnyMatrix& a, const FactorProbe& probe, cudaStream_t stream) {
  if (a.cols == 0) return cudaSuccess;
  DispatchDevice(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<const T> view{reinterpret_cast<const T*>(a.data), a.rows, a.cols, a.ld};
    ProbeMatrixKernel<<<static_cast<unsigned>(a.cols), kBlockThreads, 0, stream>>>(
        view, probe.scale, probe.matrix_products<WideType<T>>());
  });
  return cudaGetLastError();
}

cudaError_t LaunchProbeLower(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                             const FactorProbe& probe, cudaStream_t stream) {
  if (lu.cols == 0) return cudaSuccess;
  return DispatchDevice(lu.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t* p = nullptr;
    if (ipiv != nullptr) {
      p = reinterpret_cast<int64_t*>(probe.permuted<WideType<T>>());
      const cudaError_t code = LaunchTracePermutation(ipiv, lu.rows, p, stream);
      if (code != cudaSuccess) return code;
    }
    const MatrixView<const T> view{reinterpret_cast<const T*>(lu.data), lu.rows, lu.cols, lu.ld};
    ProbeLowerKernel<<<static_cast<unsigned>(lu.cols), kBlockThreads, 0, stream>>>(
        view, unit_in_u, p, probe.scale, probe.lower_products<WideType<T>>());
    return cudaGetLastError();
  });
}

}  // namespace crout::cuda
