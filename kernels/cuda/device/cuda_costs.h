// What the methods of one GPU cost beside their tables.
#ifndef CROUT_KERNELS_CUDA_DEVICE_CUDA_COSTS_H_
#define CROUT_KERNELS_CUDA_DEVICE_CUDA_COSTS_H_

#include <string>

#include "kernels/costs/kept_costs.h"
#include "kernels/cuda/device/cuda_context.h"

namespace crout::cuda {

// The tables (own_costs.h, vendor_costs.h) are an H100's. Takes this GPU's ratios to them from a
// file in `directory`, one for each GPU, if it is of the same GPU, driver and libraries; else
// measures, on the warm context, in about two seconds at most, and keeps them there. "": nothing is
// kept.
KeptCosts CalibrateCosts(Context& context, const std::string& directory);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_CUDA_COSTS_H_
