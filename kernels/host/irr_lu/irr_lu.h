// SPDX-License-Identifier: Apache-2.0

// irr_lu on the host: LU factorization of irregular batches, and solves.
#ifndef CROUT_KERNELS_HOST_IRR_LU_IRR_LU_H_
#define CROUT_KERNELS_HOST_IRR_LU_IRR_LU_H_

#include <memory>

#include "kernels/batch_lu.h"
#include "kernels/host/device/executor.h"

namespace crout::host {

// Uses IrrGetrf, IrrGetrs and IrrErrors. `executor` must outlive it.
std::unique_ptr<BatchLu> MakeIrrLu(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_IRR_LU_IRR_LU_H_
