// SPDX-License-Identifier: Apache-2.0

// Calibrates the cost tables for one GPU.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_COSTS_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_COSTS_H_

#include <string>

#include "kernels/costs/stored_costs.h"
#include "kernels/cuda/device/cuda_context.h"

namespace crout::cuda {

// Returns this GPU's ratios to the cost tables (own_costs.h, vendor_costs.h), which are an H100's.
// Reads them from a file in `directory`, one file per GPU, if that file belongs to the same GPU,
// driver and libraries. Otherwise measures them on the warm context, in at most about two seconds,
// and stores them there. An empty `directory` disables the file.
StoredCosts CalibrateCosts(Context& context, const std::string& directory);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_COSTS_H_
