// Products of a stored matrix with float64 vectors: residuals and their componentwise scale.
#ifndef CROUT_KERNELS_HOST_OPS_RESIDUAL_H_
#define CROUT_KERNELS_HOST_OPS_RESIDUAL_H_

#include "kernels/matrix_ops.h"
#include "kernels/memory.h"

namespace crout::host {

// w := w - op(a) x, in float64 whatever the type of `a`. Fails only for want of `scratch` memory.
absl::Status SubtractProduct(int cores, const AnyMatrix& a, Op op, const MatrixView<double>& x,
                             const MatrixView<double>& w, MemoryResource& scratch);

// w := w + |op(a)| |x|.
absl::Status AddAbsProduct(int cores, const AnyMatrix& a, Op op, const MatrixView<double>& x,
                           const MatrixView<double>& w, MemoryResource& scratch);

// As MatrixOps::Residual defines it, from a residual r that is there.
double NormwiseBackwardError(double norm_op_a, const MatrixView<double>& x,
                             const MatrixView<double>& b, const MatrixView<double>& r);

// As MatrixOps::ComponentwiseError defines it.
double ComponentwiseError(const MatrixView<double>& r, const MatrixView<double>& w);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_RESIDUAL_H_
