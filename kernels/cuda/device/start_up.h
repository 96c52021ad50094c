// SPDX-License-Identifier: Apache-2.0

// Prepares a new device for its first job.
#ifndef CROUT_KERNELS_CUDA_DEVICE_START_UP_H_
#define CROUT_KERNELS_CUDA_DEVICE_START_UP_H_

#include <string>

#include "absl/status/status.h"
#include "kernels/costs/measured_costs.h"
#include "kernels/cuda/device/cuda_context.h"

namespace crout::cuda {

// Runs every algorithm and solver of the context's device once in each of its types. At the first
// call, the driver loads each kernel and the vendor libraries allocate their internal memory.
absl::Status WarmUp(Context& context);

// Returns this GPU's ratios to the cost tables (method_costs.h), which are an H100's.
// Reads them from a file in `directory`, one file per GPU, if that file belongs to the same GPU,
// driver and libraries. Otherwise measures them on the warm context, in at most about two seconds,
// and stores them there. An empty `directory` disables the file.
StoredCosts CalibrateCosts(Context& context, const std::string& directory);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_START_UP_H_
