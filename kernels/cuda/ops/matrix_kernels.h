// SPDX-License-Identifier: Apache-2.0

// The kernels of CudaMatrixOps, CudaSparseOps and CudaKrylovOps. A `report` is memory that host and
// device can access.
#ifndef CROUT_KERNELS_CUDA_OPS_MATRIX_KERNELS_H_
#define CROUT_KERNELS_CUDA_OPS_MATRIX_KERNELS_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/matrix.h"
#include "kernels/matrix_ops.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/sparse_view.h"

namespace crout::cuda {

// Enqueues MatrixOps::SetEntries. Two launches: the second finds entries that another entry has
// overwritten.
cudaError_t LaunchSetEntries(const EntryList& entries, const AnyMatrix& a,
                             ReductionScratch* scratch, EntryStats* report, cudaStream_t stream);

// Enqueues MatrixOps::SumValues, one thread per element.
cudaError_t LaunchSumValues(const ValueMap& map, DType dtype, const std::byte* values,
                            std::byte* out, ReductionScratch* scratch, ValueStats* report,
                            cudaStream_t stream);

// Enqueues row[i], col[j] := powers of two as specified by MatrixOps::EquilibrationScales, and
// *report := their statistics. Two launches.
cudaError_t LaunchEquilibrationScales(const AnyMatrix& a, double* row, double* col,
                                      ReductionScratch* scratch, ScaleStats* report,
                                      cudaStream_t stream);
cudaError_t LaunchEquilibrationScales(const AnySparse& a, double* row, double* col,
                                      ReductionScratch* scratch, ScaleStats* report,
                                      cudaStream_t stream);

// Enqueues down[j], up[j] := powers of two as specified by MatrixOps::ColumnScales. `in` is in
// float64 or complex128.
cudaError_t LaunchColumnScales(const AnyMatrix& in, const double* row, int exponent, double* down,
                               double* up, cudaStream_t stream);

// Enqueues *report := the MatrixStats of `in`, whose elements will be converted to `target`. One
// launch.
cudaError_t LaunchMatrixStats(const PackedMatrix& in, DType target, ReductionScratch* scratch,
                              MatrixStats* report, cudaStream_t stream);

// The same for a sparse matrix. The bits are those of its dense form, packed by columns.
cudaError_t LaunchMatrixStats(const AnySparse& in, DType target, ReductionScratch* scratch,
                              MatrixStats* report, cudaStream_t stream);

// Enqueues probe.matrix_products() := z^T A, at memory bandwidth. One launch.
cudaError_t LaunchProbeMatrix(const AnyMatrix& a, const FactorProbe& probe, cudaStream_t stream);

// Enqueues probe.lower_products() := (P z)^T L. `ipiv`: null for no interchanges. Up to two
// launches; LaunchInspectFactor completes the probe.
cudaError_t LaunchProbeLower(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                             const FactorProbe& probe, cudaStream_t stream);

// Enqueues *report := the FactorStats of `lu` as specified by MatrixOps::InspectFactor. One launch.
// `probe` is empty, or has the products of A and L.
cudaError_t LaunchInspectFactor(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                                const FactorProbe& probe, ReductionScratch* scratch,
                                FactorStats* report, cudaStream_t stream);

// Enqueues the figures of MatrixOps::InspectPivots in *report. One launch.
cudaError_t LaunchInspectPivots(const AnyMatrix& lu, FactorStats* report, cudaStream_t stream);

// Vectors and products of the functions below are in float64, or in complex128 if the matrix is
// complex.

// Enqueues r := b - op(a) x. Reads `a` once per four columns of x, so a few columns take the time
// of reading `a`.
cudaError_t LaunchResidual(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                           const AnyMatrix& r, cudaStream_t stream);

// Enqueues w := |b| + |op(a)| |x| in the same way, with |Re| + |Im| for complex numbers.
cudaError_t LaunchAbsProduct(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                             const MatrixView<double>& w, cudaStream_t stream);

// The same for a sparse matrix, which is also read once per four columns.
cudaError_t LaunchResidual(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                           const AnyMatrix& r, cudaStream_t stream);
cudaError_t LaunchAbsProduct(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                             const MatrixView<double>& w, cudaStream_t stream);

// Enqueues *report := the backward error of x with the residual r. `add_rhs`: r holds -op(a) x on
// entry, and the residual on exit.
cudaError_t LaunchBackwardError(double norm_op_a, const AnyMatrix& x, const AnyMatrix& b,
                                const AnyMatrix& r, bool add_rhs, ReductionScratch* scratch,
                                ResidualStats* report, cudaStream_t stream);

// Enqueues report->componentwise_error := the result that MatrixOps::ComponentwiseError specifies.
cudaError_t LaunchComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w,
                                     ReductionScratch* scratch, ResidualStats* report,
                                     cudaStream_t stream);

// Enqueues r := b - op(a) x and *report := its figures, as specified by
// MatrixOps::WideRangeResidual. Two launches, with one block per row of op(a).
cudaError_t LaunchWideRangeResidual(const AnyMatrix& a, Op op, const AnyMatrix& x,
                                    const AnyMatrix& b, const AnyMatrix& r,
                                    ReductionScratch* scratch, ResidualStats* report,
                                    cudaStream_t stream);
cudaError_t LaunchWideRangeResidual(const AnySparse& a, Op op, const AnyMatrix& x,
                                    const AnyMatrix& b, const AnyMatrix& r,
                                    ReductionScratch* scratch, ResidualStats* report,
                                    cudaStream_t stream);

// KrylovOps specifies these functions. w is in float64 or complex128. `scales` and `most` are in
// device memory.
cudaError_t LaunchScaleColumns(const double* scales, const AnyMatrix& w, cudaStream_t stream);
cudaError_t LaunchColumnMaxAbs(const AnyMatrix& w, double* most, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_MATRIX_KERNELS_H_
