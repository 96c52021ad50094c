// SPDX-License-Identifier: Apache-2.0

// Residuals of systems with numbers close to the limits of float64's range.
#ifndef CROUT_KERNELS_HOST_OPS_WIDE_RANGE_RESIDUAL_H_
#define CROUT_KERNELS_HOST_OPS_WIDE_RANGE_RESIDUAL_H_

#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout::host {

// Implements MatrixOps::WideRangeResidual; a sparse matrix gives the bits of its dense form.
// `cores` as for ParallelFor; the result does not depend on it. Once `stop` returns true, the
// result is undefined.
ResidualStats ComputeWideRangeResidual(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const AnyMatrix& r, StopRequested stop);
ResidualStats ComputeWideRangeResidual(int cores, const AnySparse& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const AnyMatrix& r, StopRequested stop);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_WIDE_RANGE_RESIDUAL_H_
