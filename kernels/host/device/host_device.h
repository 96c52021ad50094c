// SPDX-License-Identifier: Apache-2.0

// The host device: OpenBLAS and Crout's own reference algorithms.
#ifndef CROUT_KERNELS_HOST_DEVICE_HOST_DEVICE_H_
#define CROUT_KERNELS_HOST_DEVICE_HOST_DEVICE_H_

#include <cstddef>
#include <memory>

#include "kernels/device.h"
#include "kernels/host/device/executor.h"

namespace crout::host {

struct Options {
  // Cores for all jobs together. 0: the cores of the process's affinity mask, or OMP_NUM_THREADS if
  // it is smaller.
  int threads = 0;
  // Runs the work of this device and of other devices on the same cores. Null: an executor of the
  // device's own, with `threads` cores.
  std::shared_ptr<Executor> executor = nullptr;
  // Limit, in bytes, on freed memory kept for later jobs.
  size_t cached_bytes = size_t{2} << 30;
};

// Creates an executor for `threads` cores; 0 as in Options.
std::shared_ptr<Executor> MakeExecutor(int threads);

// Creates the host device. Never fails; the device is always healthy. Takes some milliseconds to
// time small factorizations (calibration.h). Create only one per process: each uses all cores.
std::unique_ptr<Device> MakeDevice(const Options& options);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_HOST_DEVICE_H_
