// First-use costs, paid at start.
#ifndef CROUT_KERNELS_CUDA_WARM_UP_H_
#define CROUT_KERNELS_CUDA_WARM_UP_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_context.h"

namespace crout {

// Runs every algorithm and solver of the context's device once, in both types: the driver loads
// each kernel, and the vendor libraries take their internal memory, at the first call.
absl::Status WarmUp(CudaContext& context);

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_WARM_UP_H_
