// The sparse building blocks that a device may provide beside the dense ones.
#ifndef CROUT_KERNELS_SPARSE_OPS_H_
#define CROUT_KERNELS_SPARSE_OPS_H_

#include "absl/status/status.h"
#include "kernels/matrix.h"
#include "kernels/sparse_view.h"

namespace crout {

// Of one context (ExecutionContext::sparse_ops), whose report() they fill. All matrices are in the
// memory of its device; the dense ones are column-major, x, b and r n x k in float64, or complex128
// where the matrix is complex, w in float64. Calls enqueue; the status is as that of MatrixOps. The
// same input gives the same bits, every time.
class SparseOps {
 public:
  virtual ~SparseOps() = default;

  // report().matrix := what MatrixOps::Import says of the dense form, packed by columns, when it
  // converts that to `converted_to`: positions are its offsets there, norms have the same bits.
  virtual absl::Status Inspect(const AnySparse& a, DType converted_to) = 0;

  // out := diag(row) a diag(col), in full: what MatrixOps::CopyScaled makes of the dense form, to
  // the bit. row, col: null for the identity. out: n x n, real or complex as `a` is.
  virtual absl::Status Densify(const AnySparse& a, const double* row, const double* col,
                               const AnyMatrix& out) = 0;

  // As the MatrixOps of these names, of the dense form: scales of the same bits, and report() as it
  // is there. Sums may be added in another order.
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
