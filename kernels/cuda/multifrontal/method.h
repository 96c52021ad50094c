// SPDX-License-Identifier: Apache-2.0

// The multifrontal method for the CUDA device's catalogue.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_METHOD_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_METHOD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_device_core.h"
#include "kernels/lu_algorithm.h"
#include "kernels/sparse_lu.h"

namespace crout::cuda {

// Creates `multifrontal`: LU by dense fronts along the elimination tree, with the fronts of one
// level as irregular batches (multifrontal.h). Uses the current device.
absl::StatusOr<std::unique_ptr<SparseLu>> MakeMultifrontal(DeviceCore& core);

// Creates the solver `multifrontal` for such factors.
std::unique_ptr<TriangularSolver> MakeMultifrontalSolver(DeviceCore& core);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_METHOD_H_
