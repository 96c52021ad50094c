// SPDX-License-Identifier: Apache-2.0

// Pays first-use costs at startup.
#ifndef CROUT_KERNELS_CUDA_DEVICE_WARM_UP_H_
#define CROUT_KERNELS_CUDA_DEVICE_WARM_UP_H_

#include "absl/status/status.h"
#include "kernels/cuda/device/cuda_context.h"

namespace crout::cuda {

// Runs every algorithm and solver of the context's device once in each of its types. At the first
// call, the driver loads each kernel and the vendor libraries allocate their internal memory.
absl::Status WarmUp(Context& context);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_WARM_UP_H_
