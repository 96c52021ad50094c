// Programmatic dependent launch, from within a kernel. On GPUs without it a kernel starts when the
// one before it in its stream has ended.
#ifndef CROUT_KERNELS_CUDA_DEPENDENT_LAUNCH_CUH_
#define CROUT_KERNELS_CUDA_DEPENDENT_LAUNCH_CUH_

#include <cuda_runtime_api.h>

namespace crout {

// What the kernel before wrote is seen behind this.
__device__ inline void AwaitKernelBefore() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the kernel behind start.
__device__ inline void ReleaseKernelBehind() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_DEPENDENT_LAUNCH_CUH_
