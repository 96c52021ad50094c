// SPDX-License-Identifier: Apache-2.0

// Emulates the grid barrier of a cooperative launch on host threads.
#ifndef CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_GRID_BARRIER_CUH_
#define CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_GRID_BARRIER_CUH_

#include "tests/emulation/emulated_grid.h"

namespace crout::cuda {

inline void SyncGrid() { EmulatedThread::Grid().Sync(); }

}  // namespace crout::cuda

#endif  // CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_GRID_BARRIER_CUH_
