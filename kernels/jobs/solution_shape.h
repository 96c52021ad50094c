// SPDX-License-Identifier: Apache-2.0

// Shape of a solution if matrix or right-hand side may be complex.
#ifndef CROUT_KERNELS_JOBS_SOLUTION_SHAPE_H_
#define CROUT_KERNELS_JOBS_SOLUTION_SHAPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/matrix.h"

namespace crout {

struct SolutionShape {
  PackedMatrix delivered;  // X, without data: like B, but complex if A is
  // Columns of the system that is solved. With a real A, real and imaginary parts of a complex B
  // are separate columns, which halves the work compared with a complex A.
  int64_t columns = 0;
};

// Returns the shape for op(A) X = B, with A real or complex as `field` is. INVALID_ARGUMENT if a
// size overflows.
inline absl::StatusOr<SolutionShape> ShapeSolution(DType field, const PackedMatrix& rhs) {
  SolutionShape shape{rhs, rhs.cols};
  if (IsComplex(field)) {
    shape.delivered.dtype = ComplexOf(rhs.dtype);
  } else if (IsComplex(rhs.dtype) && __builtin_mul_overflow(rhs.cols, 2, &shape.columns)) {
    return absl::InvalidArgumentError(
        "the size of the right-hand sides overflows. Send fewer columns");
  }
  return shape;
}

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SOLUTION_SHAPE_H_
