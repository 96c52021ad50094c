// SPDX-License-Identifier: Apache-2.0

// irr_lu's panels without registers, for comparison.
#ifndef CROUT_TESTS_BENCH_GPU_IRR_PANELS_H_
#define CROUT_TESTS_BENCH_GPU_IRR_PANELS_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/irr_lu/lu_kernels.h"

namespace crout {

// Like cuda::LaunchIrrGetf2 from the first column on, but always column by column in the GPU's
// memory, even for few rows.
cudaError_t LaunchGetf2ByColumns(const cuda::IrrLuBatch<double>& batch,
                                 const cuda::IrrMembers& members, cudaStream_t stream);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_GPU_IRR_PANELS_H_
