// SPDX-License-Identifier: Apache-2.0

// Equilibration scales, as in LAPACK's geequb.
#ifndef CROUT_KERNELS_HOST_OPS_EQUILIBRATION_H_
#define CROUT_KERNELS_HOST_OPS_EQUILIBRATION_H_

#include "kernels/matrix_ops.h"
#include "kernels/sparse_view.h"

namespace crout::host {

// Implements MatrixOps::EquilibrationScales; a sparse matrix gets the scales of its dense form.
// `cores` as for ParallelFor; the result does not depend on it.
ScaleStats ComputeScales(int cores, const AnyMatrix& a, double* row, double* col);
ScaleStats ComputeScales(int cores, const AnySparse& a, double* row, double* col);

// Implements MatrixOps::ColumnScales.
void ComputeColumnScales(int cores, const AnyMatrix& in, const double* row, int exponent,
                         double* down, double* up);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_EQUILIBRATION_H_
