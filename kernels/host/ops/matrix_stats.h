// SPDX-License-Identifier: Apache-2.0

// Norms of a packed matrix and the position of its first non-finite entry, in one pass.
#ifndef CROUT_KERNELS_HOST_OPS_MATRIX_STATS_H_
#define CROUT_KERNELS_HOST_OPS_MATRIX_STATS_H_

#include "kernels/host/ops/scratch.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"

namespace crout::host {

// Computes the statistics. `cores` as for ParallelFor; the result does not depend on it.
// `converted_to` is the type checked for overflow.
MatrixStats ComputeMatrixStats(int cores, const PackedMatrix& in, DType converted_to,
                               Scratch& scratch);

// The same for a sparse matrix, with the bits of its dense form packed by columns.
MatrixStats ComputeMatrixStats(int cores, const AnySparse& in, DType converted_to);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_MATRIX_STATS_H_
