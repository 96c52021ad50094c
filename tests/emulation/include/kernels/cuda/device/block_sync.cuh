// SPDX-License-Identifier: Apache-2.0

// Synchronizes the blocks of a kernel on host threads.
#ifndef CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_BLOCK_SYNC_CUH_
#define CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_BLOCK_SYNC_CUH_

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "tests/emulation/emulated_grid.h"

namespace crout::cuda {

inline void SignalArrival(int32_t* count) { std::atomic_ref<int32_t>(*count).fetch_add(1); }

// Aborts if an arrival is missing. Blocks run one after the other here, so waiting would not help.
inline void AwaitArrivals(const int32_t* count, int32_t expected) {
  if (std::atomic_ref<int32_t>(*const_cast<int32_t*>(count)).load() < expected) std::abort();
}

// The grid barrier of a cooperative launch.
inline void SyncGrid() { EmulatedThread::Grid().Sync(); }

}  // namespace crout::cuda

#endif  // CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_BLOCK_SYNC_CUH_
