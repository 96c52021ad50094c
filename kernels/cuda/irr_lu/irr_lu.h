// SPDX-License-Identifier: Apache-2.0

// irr_lu on a GPU: LU factorization of irregular batches, and solves.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_LU_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_LU_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/cuda/device/cuda_device_core.h"

namespace crout::cuda {

// Uses IrrGetrf, IrrGetrs and the probe, and LargeMembers for large members. The workspace's host
// memory holds the order of the members and each member's offset in the probe's workspace. `core`
// outlives the result.
absl::StatusOr<std::unique_ptr<BatchLu>> MakeIrrLu(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_LU_H_
