// What the host and the kernels of a stoppable method tell each other while it runs.
#ifndef CROUT_KERNELS_CUDA_DEVICE_HOST_LINE_H_
#define CROUT_KERNELS_CUDA_DEVICE_HOST_LINE_H_

#include <cstdint>

#include "kernels/execution_context.h"

namespace crout::cuda {

// Addresses in DeviceReport, pinned host memory that CPU and GPU see coherently. Each is one
// aligned word that one side alone writes while kernels run that have it; volatile makes an access
// of a kernel relaxed and of system scope, so that it is whole and soon seen, in no order with any
// other. A look at `stop` takes about a microsecond; telling `columns` waits for nothing.
struct HostLine {
  HostLine() = default;
  explicit HostLine(DeviceReport& report) : stop(&report.stop), columns(&report.columns_told) {}

  const volatile uint32_t* stop = nullptr;
  volatile int64_t* columns = nullptr;  // null in panels that tell nobody
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_HOST_LINE_H_
