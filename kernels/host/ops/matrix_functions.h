// SPDX-License-Identifier: Apache-2.0

// The functions behind HostOps and HostSparseOps. `cores` is as for ParallelFor.
#ifndef CROUT_KERNELS_HOST_OPS_MATRIX_FUNCTIONS_H_
#define CROUT_KERNELS_HOST_OPS_MATRIX_FUNCTIONS_H_

#include "kernels/host/ops/scratch.h"
#include "kernels/matrix.h"
#include "kernels/matrix_ops.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout::host {

// Unpacks `in` into the column-major `out`, with conversion of types. If `in` is complex and `out`
// real, `out` has twice as many columns: first all real parts, then all imaginary parts.
void Unpack(int cores, const PackedMatrix& in, const AnyMatrix& out);

// Packs the column-major `in` into `out`, with the type and order of `layout`. If `in` is real and
// the packed matrix complex, `in` has the real parts and then the imaginary parts as above, or only
// real parts, and the imaginary parts are 0.
void Pack(int cores, const AnyMatrix& in, const PackedMatrix& layout, std::byte* out);

// out := diag(row) in diag(col). Implements MatrixOps::CopyScaled.
void ScaleInto(int cores, const AnyMatrix& in, const double* row, const double* col,
               const AnyMatrix& out);

// The same for a sparse `in`: fills the dense `out`, with the bits its dense form would give.
void ScaleInto(int cores, const AnySparse& in, const double* row, const double* col,
               const AnyMatrix& out);

// Implements MatrixOps::SetEntries. If an entry has several values, the last one remains.
EntryStats SetEntries(const EntryList& entries, const AnyMatrix& a);

// Implements MatrixOps::SumValues.
ValueStats SumValues(int cores, const ValueMap& map, DType dtype, const std::byte* values,
                     std::byte* out);

// Implements MatrixOps::EquilibrationScales; a sparse matrix gets the scales of its dense form.
// The result does not depend on `cores`.
ScaleStats ComputeScales(int cores, const AnyMatrix& a, double* row, double* col);
ScaleStats ComputeScales(int cores, const AnySparse& a, double* row, double* col);

// Implements MatrixOps::ColumnScales.
void ComputeColumnScales(int cores, const AnyMatrix& in, const double* row, int exponent,
                         double* down, double* up);

// Computes the statistics; they do not depend on `cores`. `converted_to` is the type checked for
// overflow.
MatrixStats ComputeMatrixStats(int cores, const PackedMatrix& in, DType converted_to,
                               Scratch& scratch);

// The same for a sparse matrix, with the bits of its dense form packed by columns.
MatrixStats ComputeMatrixStats(int cores, const AnySparse& in, DType converted_to);

// Implements MatrixOps::StartProbe. The result does not depend on `cores`.
void StartFactorProbe(int cores, const AnyMatrix& a, const FactorProbe& probe);

// Returns FactorStats::probe of a factor, as MatrixOps::InspectFactor defines it. Tolerates an ipiv
// that is not a permutation, as a stopped factorization leaves it.
double FinishFactorProbe(int cores, const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                         const FactorProbe& probe);

// Implements MatrixOps::InspectFactor. The result does not depend on `cores`.
FactorStats ComputeFactorStats(int cores, const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv);

// Implements MatrixOps::InspectPivots.
FactorStats ComputePivotStats(const AnyMatrix& lu);

// Vectors are float64, or complex128 if `a` is complex.

// w := w - op(a) x. `a` may have any precision.
void SubtractProduct(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& w,
                     Scratch& scratch);

// out_ij := |in_ij|; for complex numbers |Re| + |Im|.
void ComputeMagnitudes(int cores, const AnyMatrix& in, const MatrixView<double>& out);

// w := w + |op(a)| |x|, with the magnitudes of ComputeMagnitudes.
void AddAbsProduct(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x,
                   const MatrixView<double>& w, Scratch& scratch);

// r := b - op(a) x, and w := |op(a)| |x| + |b|, in float64. The result does not depend on `cores`.
void ComputeResidual(int cores, const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                     const AnyMatrix& r);
void ComputeAbsProduct(int cores, const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                       const MatrixView<double>& w);

// Backward error for a given residual r, as MatrixOps::Residual defines it.
double NormwiseBackwardError(double norm_op_a, const AnyMatrix& x, const AnyMatrix& b,
                             const AnyMatrix& r);

// Implements MatrixOps::ComponentwiseError.
double ComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w);

// Implements MatrixOps::WideRangeResidual; a sparse matrix gives the bits of its dense form.
// The result does not depend on `cores`. Once `stop` returns true, it is undefined.
ResidualStats ComputeWideRangeResidual(int cores, const AnyMatrix& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const AnyMatrix& r, StopRequested stop);
ResidualStats ComputeWideRangeResidual(int cores, const AnySparse& a, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const AnyMatrix& r, StopRequested stop);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_MATRIX_FUNCTIONS_H_
