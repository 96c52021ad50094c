// The host as a device: OpenBLAS and Crout's own reference algorithms.
#ifndef CROUT_KERNELS_HOST_DEVICE_HOST_DEVICE_H_
#define CROUT_KERNELS_HOST_DEVICE_HOST_DEVICE_H_

#include <cstddef>
#include <memory>

#include "kernels/device.h"

namespace crout::host {

struct Options {
  // Cores for all jobs together; 0: those of the process's affinity, or OMP_NUM_THREADS if less.
  int threads = 0;
  // Most bytes of freed memory kept for later jobs.
  size_t cached_bytes = size_t{2} << 30;
};

// Never fails and is always healthy. Takes some milliseconds, in which it times small
// factorizations (calibration.h). A process has one: two would each use all cores.
std::unique_ptr<Device> MakeDevice(const Options& options);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_HOST_DEVICE_H_
