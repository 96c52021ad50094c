// The shape of a solution, where one of matrix and right-hand side may be complex.
#ifndef CROUT_KERNELS_JOBS_SOLUTION_SHAPE_H_
#define CROUT_KERNELS_JOBS_SOLUTION_SHAPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/matrix.h"

namespace crout {

struct SolutionShape {
  PackedMatrix delivered;  // of X, without data: B's, but complex where A is
  // As it is solved for. With a real A the real parts of a complex B and its imaginary ones are
  // columns of their own: half the work of making A complex.
  int64_t columns = 0;
};

// Of op(A) X = B, for an A that is real or complex as `field` is. INVALID_ARGUMENT for a size that
// overflows.
inline absl::StatusOr<SolutionShape> ShapeSolution(DType field, const PackedMatrix& rhs) {
  SolutionShape shape{rhs, rhs.cols};
  if (IsComplex(field)) {
    shape.delivered.dtype = ComplexOf(rhs.dtype);
  } else if (IsComplex(rhs.dtype) && __builtin_mul_overflow(rhs.cols, 2, &shape.columns)) {
    return absl::InvalidArgumentError("the right-hand sides have no valid size");
  }
  return shape;
}

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SOLUTION_SHAPE_H_
