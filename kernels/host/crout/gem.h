// SPDX-License-Identifier: Apache-2.0

// Gaussian elimination in blocks.
#ifndef CROUT_KERNELS_HOST_CROUT_GEM_H_
#define CROUT_KERNELS_HOST_CROUT_GEM_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// "gem": right-looking Gaussian elimination with partial pivoting, unit diagonal in L, in blocks of
// columns whose updates are BLAS products. Source: Golub and Van Loan, Matrix Computations, 4th
// ed., algorithm 3.4.1.
//
// Within a block, rows are divided by the pivot rather than multiplied by its reciprocal, so
// subnormal pivots are harmless there. After a zero pivot the method continues with a zero column
// of L, and PA = LU still holds.
std::unique_ptr<LuAlgorithm> MakeGem(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_CROUT_GEM_H_
