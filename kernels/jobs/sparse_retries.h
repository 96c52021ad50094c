// SPDX-License-Identifier: Apache-2.0

// Repeated sparse factorizations of one matrix, for a factor that can be trusted.
#ifndef CROUT_KERNELS_JOBS_SPARSE_RETRIES_H_
#define CROUT_KERNELS_JOBS_SPARSE_RETRIES_H_

#include "absl/status/statusor.h"
#include "kernels/factorization.h"
#include "kernels/jobs/sparse_attempt.h"
#include "kernels/stop_requested.h"

namespace crout {

// Factors the matrix of `attempt` by its plan. If attempt.can_grow(), FactorizeSparse
// (sparse_factorize.h) lists the retries that follow a poor factor. The plan and the factor of the
// best run remain in `attempt`. max_abs: the largest magnitude in the matrix.
//
// A retry that meets RESOURCE_EXHAUSTED leaves the factor made before it. Other errors are those of
// SparseLu::Factor and Analyze; CANCELLED by `stop`.
absl::StatusOr<SparseSummary> FactorWithRetries(SparseAttempt& attempt, double max_abs,
                                                StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SPARSE_RETRIES_H_
