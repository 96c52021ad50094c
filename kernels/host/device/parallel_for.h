// SPDX-License-Identifier: Apache-2.0

// Parallel loops over the host device's cores. Include only in sources compiled with OpenMP.
#ifndef CROUT_KERNELS_HOST_DEVICE_PARALLEL_FOR_H_
#define CROUT_KERNELS_HOST_DEVICE_PARALLEL_FOR_H_

#include <atomic>
#include <cstdint>
#include <new>

namespace crout::host {

// Calls f(i) for i in [0, count), split statically over `cores` threads. Call it only from work
// that an Executor runs, with the `cores` it passed. Throws std::bad_alloc after the loop if any
// f(i) did.
template <class F>
void ParallelFor(int cores, int64_t count, const F& f) {
  if (cores == 1) {
    for (int64_t i = 0; i < count; ++i) f(i);
    return;
  }
  // An exception that leaves a parallel region would end the process.
  std::atomic<bool> no_memory = false;
#pragma omp parallel for num_threads(cores) schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    try {
      f(i);
    } catch (const std::bad_alloc&) {
      no_memory = true;
    }
  }
  if (no_memory) throw std::bad_alloc();
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_PARALLEL_FOR_H_
