// SPDX-License-Identifier: Apache-2.0

// Programmatic dependent launch. On GPUs without it, a kernel starts after the previous kernel of
// its stream has ended.
#ifndef CROUT_KERNELS_CUDA_DEVICE_DEPENDENT_LAUNCH_CUH_
#define CROUT_KERNELS_CUDA_DEVICE_DEPENDENT_LAUNCH_CUH_

#include <cuda_runtime_api.h>

#include <utility>

namespace crout::cuda {

// Waits for the previous kernel. Its writes are visible afterwards.
__device__ inline void AwaitPreviousKernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel start.
__device__ inline void ReleaseDependentKernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Enqueues a kernel that calls AwaitPreviousKernel(). `overlap`: it may start while the previous
// kernel ends.
template <class... Parameters, class... Arguments>
cudaError_t LaunchDependent(void (*kernel)(Parameters...), dim3 grid, unsigned threads,
                            size_t shared_bytes, bool overlap, cudaStream_t stream,
                            Arguments&&... arguments) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_DEPENDENT_LAUNCH_CUH_
