// SPDX-License-Identifier: Apache-2.0

// A matrix and its inverse as linear operators, independent of their storage.
#ifndef CROUT_KERNELS_OPERATORS_H_
#define CROUT_KERNELS_OPERATORS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/execution_context.h"
#include "kernels/matrix.h"

namespace crout {

// A matrix A of order n, of any element type and storage: the operations on the system matrix that
// residuals, backward errors and error bounds require. Immutable and thread-safe. Borrows its
// entries.
//
// Entries and vectors are in the memory of the contexts' device. x, b and r are n x k, in float64
// if A is real and complex128 if A is complex. w is n x k, row and col have n elements, all in
// float64.
//
// Calls enqueue (see ExecutionContext). The status is INTERNAL or UNAVAILABLE if the device refuses
// the work, RESOURCE_EXHAUSTED if memory is short; it never reports numerical problems.
class Operand {
 public:
  virtual ~Operand() = default;

  virtual int64_t order() const = 0;
  // Type of x, b and r: kFloat64 or kComplex128.
  virtual DType vector_type() const = 0;

  // Returns |op(A)|_inf of A as received; the 1-norm of A if op transposes. Inf if it overflows
  // float64.
  virtual double NormInf(Op op) const = 0;

  // Computes r := b - op(A) x, accumulated in the type of the vectors, and fills
  // report().residual.backward_error. NormInf(op) is finite. r must not overlap the others.
  virtual absl::Status Residual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                const AnyMatrix& b, const AnyMatrix& r) const = 0;

  // Same, for systems whose products or norm overflow float64 in Residual. Computes in a range wide
  // enough for all finite A, x and b, and fills both figures of report().residual. May be much
  // slower.
  virtual absl::Status WideRangeResidual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                         const AnyMatrix& b, const AnyMatrix& r) const = 0;

  // w := |op(A)| |x| + |b|, elementwise: the componentwise scale of LAPACK gerfs, with |z| = |Re z|
  // + |Im z| for complex numbers. w must not overlap the others.
  virtual absl::Status AbsProduct(ExecutionContext& context, Op op, const AnyMatrix& x,
                                  const AnyMatrix& b, const MatrixView<double>& w) const = 0;

  // Computes powers of two such that every row and column of diag(row) A diag(col) has its largest
  // entry (for complex entries, the larger part) in (1/2, 2], as LAPACK geequb does. A zero row or
  // column has scale 1.
  virtual absl::Status EquilibrationScales(ExecutionContext& context, double* row,
                                           double* col) const = 0;
};

// An operator M that approximates the inverse of a matrix of order n: a factor with a solver, of
// any type and scaling. Bound to one context, for which it may keep work buffers; like the context,
// used by one thread at a time.
class InverseOperator {
 public:
  virtual ~InverseOperator() = default;

  virtual int64_t order() const = 0;
  // Type of its vectors: kFloat64, or kComplex128 if M is complex.
  virtual DType vector_type() const = 0;

  // Enqueues out := op(M) in. Both are n x k of vector_type() in device memory, with k up to the
  // maximum given at construction; `out` may equal `in`. The status reports device errors only, not
  // numerical ones.
  virtual absl::Status Apply(Op op, const AnyMatrix& in, const AnyMatrix& out) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_OPERATORS_H_
