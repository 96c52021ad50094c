// First-use costs, paid at start.
#ifndef CROUT_KERNELS_CUDA_DEVICE_WARM_UP_H_
#define CROUT_KERNELS_CUDA_DEVICE_WARM_UP_H_

#include "absl/status/status.h"
#include "kernels/cuda/device/cuda_context.h"

namespace crout::cuda {

// Runs every algorithm and solver of the context's device once, in each type that it computes in:
// the driver loads each kernel, and the vendor libraries take their internal memory, at the first
// call.
absl::Status WarmUp(Context& context);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_WARM_UP_H_
