// Norms of a packed matrix and where it is not finite, in one pass.
#ifndef CROUT_KERNELS_HOST_OPS_MATRIX_STATS_H_
#define CROUT_KERNELS_HOST_OPS_MATRIX_STATS_H_

#include "kernels/host/ops/scratch.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"

namespace crout::host {

// `cores` as for ParallelFor; the result does not depend on it. `converted_to`: the type whose
// overflow is looked for.
MatrixStats ComputeMatrixStats(int cores, const PackedMatrix& in, DType converted_to,
                               Scratch& scratch);

// What is said of the dense form, packed by columns, to the bit.
MatrixStats ComputeMatrixStats(int cores, const AnySparse& in, DType converted_to);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_MATRIX_STATS_H_
