// Where all blocks of a cooperative launch meet.
#ifndef CROUT_KERNELS_CUDA_DEVICE_GRID_BARRIER_CUH_
#define CROUT_KERNELS_CUDA_DEVICE_GRID_BARRIER_CUH_

#include <cooperative_groups.h>

namespace crout::cuda {

// What any thread wrote before is what every thread reads past its first-level cache after
// (LoadFresh).
__device__ inline void MeetGrid() { cooperative_groups::this_grid().sync(); }

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_GRID_BARRIER_CUH_
