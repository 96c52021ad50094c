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

// Enqueues op(A_i) X_i = B_i for the members of a batch, with what IrrGetrf left of A in `lu` and
// `factors`. Member i of `b` is B_i on entry and X_i on exit: of `lu`'s type, as many rows as A_i,
// which is square where B_i has columns, and any number of columns, each member its own. Where A_i
// is singular (factors.info), X_i is NaN. Nothing is allocated and nothing waits.
//
// All arrays are in the memory of the current device. `order` and `parts`: as IrrGetrf's, for the
// members of `lu`. Nothing is checked: the members may be where the host cannot read them. X_i has
// the same bits whatever the other members are, and each of its columns whatever the others are.
absl::Status IrrGetrs(Op op, const IrregularBatch& lu, const BatchFactors& factors,
                      const IrregularBatch& b, const IrrOrder& parts, const int32_t* order,
                      const DeviceLimits& limits, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_GETRS_H_
