// A matrix that can be multiplied, however it is stored.
#ifndef CROUT_KERNELS_OPERAND_H_
#define CROUT_KERNELS_OPERAND_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/execution_context.h"
#include "kernels/matrix.h"

namespace crout {

// A of order n, of any element type and storage: what residuals, backward errors and error bounds
// ask of the matrix of a system. Immutable and thread-safe. It borrows its entries, which are in
// the memory of the device of the contexts that it is used with. So are the vectors: x, b and r are
// n x k, in float64 where A is real and in complex128 where it is complex; w is n x k, row and col
// are n, all in float64.
//
// Calls enqueue (see ExecutionContext). The status is INTERNAL or UNAVAILABLE when the device
// refuses the work, RESOURCE_EXHAUSTED for want of memory, never a statement about the numbers.
class Operand {
 public:
  virtual ~Operand() = default;

  virtual int64_t order() const = 0;
  // Of x, b and r: kFloat64 or kComplex128.
  virtual DType vector_type() const = 0;

  // |op(A)|_inf, of A as it arrived: its 1-norm where op transposes. Inf where that is beyond
  // float64.
  virtual double NormInf(Op op) const = 0;

  // r := b - op(A) x, accumulated in the type of these, and report().residual.backward_error.
  // NormInf(op) is finite. r may not overlap the others.
  virtual absl::Status Residual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                const AnyMatrix& b, const AnyMatrix& r) const = 0;

  // The same where Residual's products, or the norm, left float64's range: in a range wide enough
  // for all finite A, x and b. Fills both figures of report().residual. May be much slower.
  virtual absl::Status WideRangeResidual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                         const AnyMatrix& b, const AnyMatrix& r) const = 0;

  // w := |op(A)| |x| + |b|, elementwise: the componentwise scale of LAPACK gerfs, where the
  // magnitude of a complex number is |Re| + |Im|. w may not overlap the others.
  virtual absl::Status AbsProduct(ExecutionContext& context, Op op, const AnyMatrix& x,
                                  const AnyMatrix& b, const MatrixView<double>& w) const = 0;

  // Powers of two such that every row and column of diag(row) A diag(col) has its largest entry, or
  // part of a complex one, in (1/2, 2]: LAPACK geequb. 1 for a line of zeros.
  virtual absl::Status EquilibrationScales(ExecutionContext& context, double* row,
                                           double* col) const = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_OPERAND_H_
