// SPDX-License-Identifier: Apache-2.0

// Products of a stored matrix with vectors, for residuals and componentwise errors.
#ifndef CROUT_KERNELS_HOST_OPS_RESIDUAL_H_
#define CROUT_KERNELS_HOST_OPS_RESIDUAL_H_

#include "kernels/host/ops/scratch.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"

namespace crout::host {

// Vectors are float64, or complex128 if `a` is complex.

// w := w - op(a) x. `a` may have any precision.
void SubtractProduct(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& w,
                     Scratch& scratch);

// out_ij := |in_ij|; for complex numbers |Re| + |Im|.
void ComputeMagnitudes(int cores, const AnyMatrix& in, const MatrixView<double>& out);

// w := w + |op(a)| |x|, with the magnitudes of ComputeMagnitudes.
void AddAbsProduct(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x,
                   const MatrixView<double>& w, Scratch& scratch);

// r := b - op(a) x, and w := |op(a)| |x| + |b|, in float64. `cores` as for ParallelFor; the result
// does not depend on it.
void ComputeResidual(int cores, const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                     const AnyMatrix& r);
void ComputeAbsProduct(int cores, const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                       const MatrixView<double>& w);

// Backward error for a given residual r, as MatrixOps::Residual defines it.
double NormwiseBackwardError(double norm_op_a, const AnyMatrix& x, const AnyMatrix& b,
                             const AnyMatrix& r);

// Implements MatrixOps::ComponentwiseError.
double ComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_RESIDUAL_H_
