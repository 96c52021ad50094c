// SPDX-License-Identifier: Apache-2.0

// Validation of job arguments and of uploaded numbers.
#ifndef CROUT_KERNELS_JOBS_INPUT_CHECKS_H_
#define CROUT_KERNELS_JOBS_INPUT_CHECKS_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/factorization.h"
#include "kernels/lu_algorithm.h"
#include "kernels/matrix.h"
#include "kernels/matrix_ops.h"

namespace crout {

// INVALID_ARGUMENT if `stats`, for a matrix of `shape`, report a NaN or Inf. `what` names the
// input: "matrix", "right-hand side".
absl::Status CheckFinite(const MatrixStats& stats, const PackedMatrix& shape,
                         std::string_view what);

// INVALID_ARGUMENT if `stats` report an element that overflows in the conversion to `dtype`, or if
// the largest element is below the smallest normal number of `dtype`: underflow could then exceed a
// rounding error of the largest element. `what` as above.
absl::Status CheckConversion(const MatrixStats& stats, const PackedMatrix& shape, DType dtype,
                             std::string_view what);

// INVALID_ARGUMENT unless `shape` is square.
absl::Status CheckSquare(const PackedMatrix& shape);

// INVALID_ARGUMENT unless both are real, or both complex.
absl::Status CheckSameField(DType matrix, DType factor);

// INVALID_ARGUMENT unless the upload has the bytes of its shape. `what` as above.
absl::Status CheckUpload(size_t bytes, size_t expected, std::string_view what);

// FAILED_PRECONDITION unless the solver supports the unit diagonal of `algorithm`'s factor.
absl::Status CheckSupports(const TriangularSolver& solver, UnitDiagonal unit_diagonal,
                           std::string_view algorithm);

// Returns, for example, "pivot 3 (1-based) is exactly zero" for a singular factor.
std::string DescribeSingularity(const FactorSummary& factor);

// FAILED_PRECONDITION with the reason if info > 0.
absl::Status CheckUsable(const FactorSummary& factor);

// INVALID_ARGUMENT unless `tolerance` is in [0, 1), and 0 if the solver does not accept a
// tolerance.
absl::Status CheckTolerance(const TriangularSolver& solver, double tolerance);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_INPUT_CHECKS_H_
