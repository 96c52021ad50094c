// Products of a stored matrix with float64 vectors: residuals and their componentwise scale.
#ifndef CROUT_KERNELS_HOST_OPS_RESIDUAL_H_
#define CROUT_KERNELS_HOST_OPS_RESIDUAL_H_

#include "kernels/matrix_ops.h"
#include "kernels/memory.h"
#include "kernels/sparse_view.h"

namespace crout::host {

// w := w - op(a) x, in float64 whatever the type of `a`. Fails only for want of `scratch` memory.
absl::Status SubtractProduct(int cores, const AnyMatrix& a, Op op, const MatrixView<double>& x,
                             const MatrixView<double>& w, MemoryResource& scratch);

// w := w + |op(a)| |x|.
absl::Status AddAbsProduct(int cores, const AnyMatrix& a, Op op, const MatrixView<double>& x,
                           const MatrixView<double>& w, MemoryResource& scratch);

// r := b - op(a) x and w := |op(a)| |x| + |b|, in float64. `cores` as for ParallelFor; the result
// does not depend on it.
void ComputeResidual(int cores, const AnySparse& a, Op op, const MatrixView<double>& x,
                     const MatrixView<double>& b, const MatrixView<double>& r);
void ComputeAbsProduct(int cores, const AnySparse& a, Op op, const MatrixView<double>& x,
                       const MatrixView<double>& b, const MatrixView<double>& w);

// As MatrixOps::Residual defines it, from a residual r that is there.
double NormwiseBackwardError(double norm_op_a, const MatrixView<double>& x,
                             const MatrixView<double>& b, const MatrixView<double>& r);

// As MatrixOps::ComponentwiseError defines it.
double ComponentwiseError(const MatrixView<double>& r, const MatrixView<double>& w);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_RESIDUAL_H_
