// SPDX-License-Identifier: Apache-2.0

// The inverse of a matrix as a linear operator.
#ifndef CROUT_KERNELS_INVERSE_OPERATOR_H_
#define CROUT_KERNELS_INVERSE_OPERATOR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/matrix.h"

namespace crout {

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

#endif  // CROUT_KERNELS_INVERSE_OPERATOR_H_
