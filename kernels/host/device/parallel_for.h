// Loops of the host device over its cores. For sources that are compiled with OpenMP.
#ifndef CROUT_KERNELS_HOST_DEVICE_PARALLEL_FOR_H_
#define CROUT_KERNELS_HOST_DEVICE_PARALLEL_FOR_H_

#include <atomic>
#include <cstdint>
#include <new>

namespace crout::host {

// Calls f(i) for i in [0, count), split statically over `cores` threads. Only from work that an
// Executor runs, with the number it was given. Throws std::bad_alloc, at its end, where f does.
template <class F>
void ParallelFor(int cores, int64_t count, const F& f) {
  if (cores == 1) {
    for (int64_t i = 0; i < count; ++i) f(i);
    return;
  }
  // What leaves a parallel region ends the process.
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
