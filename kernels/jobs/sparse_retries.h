// SPDX-License-Identifier: Apache-2.0

// Repeats the sparse factorization of one matrix until its factor is reliable.
#ifndef CROUT_KERNELS_JOBS_SPARSE_RETRIES_H_
#define CROUT_KERNELS_JOBS_SPARSE_RETRIES_H_

#include <optional>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factorization.h"
#include "kernels/jobs/sparse_attempt.h"
#include "kernels/jobs/sparse_probe.h"
#include "kernels/stop_requested.h"

namespace crout {

struct ProbedFactor {
  SparseSummary sparse;
  // Unset if the factor is singular or overflowed, or if its elimination is partial.
  std::optional<SparseProbe> probe;
};

// Factors the matrix of `attempt` by its plan. If attempt.can_grow(), FactorizeSparse
// (sparse_factorize.h) lists the retries that follow a poor factor. The plan and the factor of the
// best run remain in `attempt`. `stats`: those of the matrix.
//
// If a retry ends with RESOURCE_EXHAUSTED, the previous factor remains. Other errors are those of
// SparseLu::Factor and Analyze; CANCELLED by `stop`.
absl::StatusOr<ProbedFactor> FactorWithRetries(SparseAttempt& attempt, const MatrixStats& stats,
                                               StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_RETRIES_H_
