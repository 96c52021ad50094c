// What the methods of one GPU cost beside their tables.
#ifndef CROUT_KERNELS_CUDA_CUDA_COSTS_H_
#define CROUT_KERNELS_CUDA_CUDA_COSTS_H_

#include <string>

#include "kernels/cuda/cuda_context.h"
#include "kernels/kept_costs.h"

namespace crout {

// The tables (own_costs.h, vendor_costs.h) are an H100's. Takes this GPU's ratios to them from a
// file in `directory`, one for each GPU, if it is of the same GPU, driver and libraries; else
// measures, on the warm context, in about two seconds at most, and keeps them there. "": nothing is
// kept.
KeptCosts CalibrateCosts(CudaContext& context, const std::string& directory);

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_CUDA_COSTS_H_
