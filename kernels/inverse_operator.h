// The inverse of a matrix, known by what it does to vectors.
#ifndef CROUT_KERNELS_INVERSE_OPERATOR_H_
#define CROUT_KERNELS_INVERSE_OPERATOR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/matrix.h"

namespace crout {

// M, near the inverse of a matrix of order n: a factor with a solver, whatever its type and scales.
// It belongs to one context, which it may keep work buffers for, and is used as that may be: by one
// thread at a time.
class InverseOperator {
 public:
  virtual ~InverseOperator() = default;

  virtual int64_t order() const = 0;
  // Of its vectors: kFloat64, or kComplex128 where M is complex.
  virtual DType vector_type() const = 0;

  // Enqueues out := op(M) in. Both n x k of vector_type(), in the device's memory, with k up to
  // what the operator was made for; `out` may be `in`. The status is of the device, never a
  // statement about the numbers.
  virtual absl::Status Apply(Op op, const AnyMatrix& in, const AnyMatrix& out) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_INVERSE_OPERATOR_H_
