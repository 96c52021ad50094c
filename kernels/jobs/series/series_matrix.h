// SPDX-License-Identifier: Apache-2.0

// Obtains the matrix of a series step: it arrives, or it is the last step's matrix, changed or
// unchanged.
#ifndef CROUT_KERNELS_JOBS_SERIES_SERIES_MATRIX_H_
#define CROUT_KERNELS_JOBS_SERIES_SERIES_MATRIX_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"
#include "kernels/jobs/series/series_step.h"
#include "kernels/numerics/updated_inverse.h"

namespace crout {

// Returns the owner of the last step's matrix, to which a change applies, or null if the matrix
// arrives.
const Factorization* LastMatrix(const SeriesStepPlan& plan, const SeriesStart& start);

// FAILED_PRECONDITION if the step needs the last matrix and it does not exist.
absl::Status CheckLastMatrix(const SeriesStepPlan& plan, const SeriesStart& start);

// Returns the update with which the step uses its old factor. plan.rank must not be 0.
LowRankUpdate StepUpdate(const SeriesStepPlan& plan, const SeriesStart& start,
                         const JobBuffers& buffers);

// Reads the matrix and returns its size, type and norms. Afterwards A is in the plan's buffer `a`,
// unless it is the last matrix unchanged. The received data is in the buffer `matrix_upload`, which
// is freed if A is elsewhere. A change that extends the update has been appended to it; the caller
// must still call CompleteUpdate. Blocks. INVALID_ARGUMENT as in SolveSeriesStep.
absl::StatusOr<FactorSummary> ReadSeriesMatrix(ExecutionContext& context,
                                               const SeriesStepPlan& plan, const SeriesStart& start,
                                               JobBuffers& buffers);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SERIES_SERIES_MATRIX_H_
