// Counts of what teams of threads have done, by which teams of other blocks wait for it: in device
// memory, zero at first.
#ifndef CROUT_KERNELS_CUDA_DEVICE_ARRIVALS_CUH_
#define CROUT_KERNELS_CUDA_DEVICE_ARRIVALS_CUH_

#include <cstdint>

namespace crout::cuda {

// By one thread of a team that has met: what the team wrote before is seen by whoever sees this.
__device__ inline void TellArrival(int32_t* count) {
  asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(count) : "memory");
}

// By one thread of a team that meets then.
__device__ inline void AwaitArrivals(const int32_t* count, int32_t expected) {
  int32_t arrived;
  do {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(arrived) : "l"(count) : "memory");
  } while (arrived < expected);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_ARRIVALS_CUH_
