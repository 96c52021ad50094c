// How well X solves op(A) X = B, computed apart from any server.
#ifndef CROUT_CLIENT_CLI_BACKWARD_ERROR_H_
#define CROUT_CLIENT_CLI_BACKWARD_ERROR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/cli/local_matrix.h"

namespace crout::cli {

enum class Operation { kNone, kTranspose, kConjugateTranspose };

// The contract's figures (SolveResult), but with residuals in long double. NaN where X, A or B
// have NaN.
struct BackwardErrors {
  // max over columns j of |b_j - op(A) x_j| / (|op(A)| |x_j| + |b_j|), infinity-norms; 0/0 is 0.
  double normwise = 0;
  // LAPACK's berr: max over columns and rows i of |b - op(A) x|_i / (|op(A)| |x| + |b|)_i, with
  // |re z| + |im z| for |z|; 0/0 is 0.
  double componentwise = 0;
};

// INVALID_ARGUMENT where A is not square, where the shapes do not fit, and where X is given by
// coordinates: its size would be a mere claim.
absl::StatusOr<BackwardErrors> ComputeBackwardErrors(const LocalMatrix& a, Operation operation,
                                                     const LocalMatrix& x, const LocalMatrix& b);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_BACKWARD_ERROR_H_
