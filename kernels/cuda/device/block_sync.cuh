// SPDX-License-Identifier: Apache-2.0

// Synchronizes the blocks of a kernel.
#ifndef CROUT_KERNELS_CUDA_DEVICE_BLOCK_SYNC_CUH_
#define CROUT_KERNELS_CUDA_DEVICE_BLOCK_SYNC_CUH_

#include <cooperative_groups.h>

#include <cstdint>

namespace crout::cuda {

// Arrival counts are in device memory, initially zero. Teams of threads increment them, and teams
// of other blocks wait for them.

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

// Everything that any thread wrote before the barrier is visible after it to reads that bypass the
// L1 cache (LoadFresh).
__device__ inline void SyncGrid() { cooperative_groups::this_grid().sync(); }

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_BLOCK_SYNC_CUH_
