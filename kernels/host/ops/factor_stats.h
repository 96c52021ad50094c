// Growth and determinant of a factor.
#ifndef CROUT_KERNELS_HOST_OPS_FACTOR_STATS_H_
#define CROUT_KERNELS_HOST_OPS_FACTOR_STATS_H_

#include "absl/status/statusor.h"
#include "kernels/matrix_ops.h"
#include "kernels/memory.h"

namespace crout::host {

// As MatrixOps::InspectFactor. `cores` as for ParallelFor; the result does not depend on it. Fails
// only for want of `scratch` memory.
absl::StatusOr<FactorStats> ComputeFactorStats(int cores, const AnyMatrix& lu, bool unit_in_u,
                                               const int64_t* ipiv, MemoryResource& scratch);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_FACTOR_STATS_H_
