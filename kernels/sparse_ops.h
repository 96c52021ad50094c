// SPDX-License-Identifier: Apache-2.0

// Optional sparse device operations.
#ifndef CROUT_KERNELS_SPARSE_OPS_H_
#define CROUT_KERNELS_SPARSE_OPS_H_

#include "absl/status/status.h"
#include "kernels/matrix.h"
#include "kernels/sparse_view.h"

namespace crout {

// Bound to one context (ExecutionContext::sparse_ops), whose report() the calls fill. All matrices
// are in device memory. Dense ones are column-major: x, b and r are n x k in float64, or complex128
// if the matrix is complex; w is in float64. Calls enqueue; status as in MatrixOps. Results are
// bitwise reproducible.
class SparseOps {
 public:
  virtual ~SparseOps() = default;

  // Fills report().matrix as MatrixOps::Import does for the dense form, packed by columns and
  // converted to `converted_to`. Positions are offsets in that dense form; norms are bitwise equal.
  virtual absl::Status Inspect(const AnySparse& a, DType converted_to) = 0;

  // out := diag(row) a diag(col) as a dense matrix, bitwise equal to MatrixOps::CopyScaled of the
  // dense form. row, col: null for the identity. out: n x n, real or complex as `a` is.
  virtual absl::Status Densify(const AnySparse& a, const double* row, const double* col,
                               const AnyMatrix& out) = 0;

  // Same as the MatrixOps of these names for the dense form, including report(). Scales are bitwise
  // equal; other results may sum in a different order.
  virtual absl::Status EquilibrationScales(const AnySparse& a, double* row, double* col) = 0;
  virtual absl::Status Residual(const AnySparse& a, Op op, double norm_op_a, const AnyMatrix& x,
                                const AnyMatrix& b, const AnyMatrix& r) = 0;
  virtual absl::Status WideRangeResidual(const AnySparse& a, Op op, const AnyMatrix& x,
                                         const AnyMatrix& b, const AnyMatrix& r) = 0;
  virtual absl::Status AbsProduct(const AnySparse& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                                  const MatrixView<double>& w) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_OPS_H_
