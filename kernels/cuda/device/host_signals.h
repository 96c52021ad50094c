// SPDX-License-Identifier: Apache-2.0

// Communication between the host and the kernels of a stoppable method while it runs.
#ifndef CROUT_KERNELS_CUDA_DEVICE_HOST_SIGNALS_H_
#define CROUT_KERNELS_CUDA_DEVICE_HOST_SIGNALS_H_

#include <cstdint>

#include "kernels/execution_context.h"

namespace crout::cuda {

// Addresses in DeviceReport, which is pinned host memory with coherent access from CPU and GPU.
// Each is one aligned word that only one side writes while kernels use it. `volatile` makes a
// kernel's access relaxed and of system scope: it is not torn, becomes visible soon, and has no
// order relative to other accesses. Reading `stop` takes about a microsecond; writing `columns`
// does not wait.
struct HostSignals {
  HostSignals() = default;
  explicit HostSignals(DeviceReport& report)
      : stop(&report.stop), columns(&report.reported_columns) {}

  const volatile uint32_t* stop = nullptr;
  volatile int64_t* columns = nullptr;  // null in panels that do not report progress
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_HOST_SIGNALS_H_
