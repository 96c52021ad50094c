// SPDX-License-Identifier: Apache-2.0

// Backward errors of X for op(A) X = B, computed without a server.
#ifndef CROUT_CLIENT_CLI_COMMANDS_BACKWARD_ERROR_H_
#define CROUT_CLIENT_CLI_COMMANDS_BACKWARD_ERROR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/cli/input/local_matrix.h"
#include "crout/types.h"

namespace crout::cli {

// The errors of SolveResult, but with residuals in long double. NaN if X, A or B have NaN.
struct BackwardErrors {
  // Maximum over columns j of |b_j - op(A) x_j| / (|op(A)| |x_j| + |b_j|), in infinity-norms; 0/0
  // is 0.
  double normwise = 0;
  // LAPACK's berr: max over columns and rows i of |b - op(A) x|_i / (|op(A)| |x| + |b|)_i, with
  // |re z| + |im z| for |z|; 0/0 is 0.
  double componentwise = 0;
};

// INVALID_ARGUMENT if A is not square, if the shapes do not match, or if X is a coordinate matrix:
// the declared size of such a matrix may be wrong.
absl::StatusOr<BackwardErrors> ComputeBackwardErrors(const LocalMatrix& a, Operation operation,
                                                     const LocalMatrix& x, const LocalMatrix& b);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_COMMANDS_BACKWARD_ERROR_H_
