// Residuals of systems whose numbers are near the end of float64's range.
#ifndef CROUT_KERNELS_HOST_OPS_WIDE_RANGE_RESIDUAL_H_
#define CROUT_KERNELS_HOST_OPS_WIDE_RANGE_RESIDUAL_H_

#include "kernels/matrix_ops.h"

namespace crout::host {

// As MatrixOps::WideRangeResidual.
ResidualStats ComputeWideRangeResidual(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const AnyMatrix& r);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_WIDE_RANGE_RESIDUAL_H_
