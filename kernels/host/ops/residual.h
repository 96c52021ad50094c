// Products of a stored matrix with vectors: residuals and their componentwise scale.
#ifndef CROUT_KERNELS_HOST_OPS_RESIDUAL_H_
#define CROUT_KERNELS_HOST_OPS_RESIDUAL_H_

#include "kernels/host/ops/scratch.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"

namespace crout::host {

// Vectors are float64, or complex128 where `a` is complex.

// w := w - op(a) x, whatever the precision of `a`.
void SubtractProduct(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& w,
                     Scratch& scratch);

// out_ij := |in_ij|, of complex numbers |Re| + |Im|.
void TakeMagnitudes(int cores, const AnyMatrix& in, const MatrixView<double>& out);

// w := w + |op(a)| |x|, with such magnitudes.
void AddAbsProduct(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x,
                   const MatrixView<double>& w, Scratch& scratch);

// r := b - op(a) x and w := |op(a)| |x| + |b|, in float64. `cores` as for ParallelFor; the result
// does not depend on it.
void ComputeResidual(int cores, const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                     const AnyMatrix& r);
void ComputeAbsProduct(int cores, const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                       const MatrixView<double>& w);

// As MatrixOps::Residual defines it, from a residual r that is there.
double NormwiseBackwardError(double norm_op_a, const AnyMatrix& x, const AnyMatrix& b,
                             const AnyMatrix& r);

// As MatrixOps::ComponentwiseError defines it.
double ComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_RESIDUAL_H_
