// SPDX-License-Identifier: Apache-2.0

// Pivot growth and determinant of a factor.
#ifndef CROUT_KERNELS_HOST_OPS_FACTOR_STATS_H_
#define CROUT_KERNELS_HOST_OPS_FACTOR_STATS_H_

#include "kernels/matrix_ops.h"

namespace crout::host {

// Implements MatrixOps::InspectFactor. `cores` as for ParallelFor; the result does not depend on
// it.
FactorStats ComputeFactorStats(int cores, const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv);

// Implements MatrixOps::InspectPivots.
FactorStats ComputePivotStats(const AnyMatrix& lu);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_FACTOR_STATS_H_
