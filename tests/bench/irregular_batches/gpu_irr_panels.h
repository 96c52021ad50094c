// SPDX-License-Identifier: Apache-2.0

// The panels of irr_lu without registers, for comparison.
#ifndef CROUT_TESTS_BENCH_IRREGULAR_BATCHES_GPU_IRR_PANELS_H_
#define CROUT_TESTS_BENCH_IRREGULAR_BATCHES_GPU_IRR_PANELS_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/irr_lu/lu_kernels.h"

namespace crout {

// Factors the first columns of each member like cuda::LaunchIrrGetf2, but column by column in the
// GPU's memory, also for members with few rows. Returns the error of the launch.
cudaError_t LaunchGetf2ByColumns(const cuda::IrrLuBatch<double>& batch,
                                 const cuda::IrrMembers& members, cudaStream_t stream);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_IRREGULAR_BATCHES_GPU_IRR_PANELS_H_
