// SPDX-License-Identifier: Apache-2.0

#include <cstdint>

#include "kernels/cuda/cudss/gather_values.h"
#include "kernels/cuda/device/complex.h"

namespace crout::cuda {
namespace {

constexpr int kThreads = 256;

template <class Source, class T>
__global__ void __launch_bounds__(kThreads)
    GatherValuesKernel(int64_t count, const int32_t* position, const Source* from, T* to) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e < count) to[e] = static_cast<T>(from[position[e]]);
}

}  // namespace

cudaError_t LaunchGatherValues(const AnySparse& a, DType dtype, std::byte* values,
                               cudaStream_t stream) {
  if (a.nonzeros == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((a.nonzeros + kThreads - 1) / kThreads);
  return DispatchDevice(dtype, [&](auto to_tag) {
    using T = typename decltype(to_tag)::type;
    return DispatchDevice(a.dtype, [&](auto from_tag) {
      using Source = typename decltype(from_tag)::type;
      if constexpr (kIsComplex<T> == kIsComplex<Source>) {
        const SparseView<Source> view = a.As<Source>();
        GatherValuesKernel<<<blocks, kThreads, 0, stream>>>(a.nonzeros, view.position, view.value,
                                                            reinterpret_cast<T*>(values));
        return cudaGetLastError();
      } else {
        return cudaErrorInvalidValue;
      }
    });
  });
}

}  // namespace crout::cuda
