// SPDX-License-Identifier: Apache-2.0

// Solves with the factors of an irregular batch on a GPU.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_GETRS_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_GETRS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/irr_lu/irr_order.h"
#include "kernels/irr_lu.h"
#include "kernels/irregular_batch.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Enqueues op(A_i) X_i = B_i for the members of a batch, with the factors that IrrGetrf left in
// `lu` and `factors`. Member i of `b` is B_i on entry and X_i on exit. It has `lu`'s type, as many
// rows as A_i, and its own number of columns. A_i must be square if B_i has columns. If A_i is
// singular (factors.info), X_i is NaN. Does not allocate or wait.
//
// All arrays are in the memory of the current device. `order` and `parts` are those of IrrGetrf,
// for the members of `lu`. Nothing is checked, because the members may be in memory that the host
// cannot read. The bits of a column of X_i depend neither on other members nor on other columns.
absl::Status IrrGetrs(Op op, const IrregularBatch& lu, const BatchFactors& factors,
                      const IrregularBatch& b, const IrrOrder& parts, const int32_t* order,
                      const DeviceLimits& limits, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_GETRS_H_
