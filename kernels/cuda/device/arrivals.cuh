// SPDX-License-Identifier: Apache-2.0

// Arrival counts in device memory, initially zero. Teams of threads increment them, and teams of
// other blocks wait for them.
#ifndef CROUT_KERNELS_CUDA_DEVICE_ARRIVALS_CUH_
#define CROUT_KERNELS_CUDA_DEVICE_ARRIVALS_CUH_

#include <cstdint>

namespace crout::cuda {

// Called by one thread of a team after the team has synchronized. Everything that the team wrote
// before is visible to every thread that observes the count.
__device__ inline void SignalArrival(int32_t* count) {
  asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(count) : "memory");
}

// Called by one thread of a team, which then synchronizes.
__device__ inline void AwaitArrivals(const int32_t* count, int32_t expected) {
  int32_t arrived;
  do {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(arrived) : "l"(count) : "memory");
  } while (arrived < expected);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_ARRIVALS_CUH_
