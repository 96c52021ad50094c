// irr_lu on a GPU: LU factorization of irregular batches, and solves.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_LU_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_LU_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/cuda/device/cuda_device_core.h"

namespace crout::cuda {

// By IrrGetrf, IrrGetrs and the probe; large members by LargeMembers. Its host memory has the order
// of the members, and where the probe has each. `core` outlives it.
absl::StatusOr<std::unique_ptr<BatchLu>> MakeIrrLu(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_LU_H_
