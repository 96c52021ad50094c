// SPDX-License-Identifier: Apache-2.0

// A barrier for all blocks of a cooperative launch.
#ifndef CROUT_KERNELS_CUDA_DEVICE_GRID_BARRIER_CUH_
#define CROUT_KERNELS_CUDA_DEVICE_GRID_BARRIER_CUH_

#include <cooperative_groups.h>

namespace crout::cuda {

// Everything that any thread wrote before the barrier is visible after it to reads that bypass the
// L1 cache (LoadFresh).
__device__ inline void SyncGrid() { cooperative_groups::this_grid().sync(); }

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_GRID_BARRIER_CUH_
