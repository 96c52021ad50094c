// How a step of a series comes to its matrix: it arrives, or it is that of the last step, changed
// or as it is.
#ifndef CROUT_KERNELS_JOBS_SERIES_MATRIX_H_
#define CROUT_KERNELS_JOBS_SERIES_MATRIX_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"
#include "kernels/jobs/series_step.h"
#include "kernels/numerics/updated_inverse.h"

namespace crout {

// Whose matrix is that of the step, but for a change; null where it arrives.
const Factorization* LastMatrix(const SeriesStepPlan& plan, const SeriesStart& start);

// FAILED_PRECONDITION where the step needs the last matrix, and it is not there.
absl::Status CheckLastMatrix(const SeriesStepPlan& plan, const SeriesStart& start);

// The update that the step uses its old factor with: of plan.rank, which is not 0.
LowRankUpdate StepUpdate(const SeriesStepPlan& plan, const SeriesStart& start,
                         const JobBuffers& buffers);

// The size, the type and the norms of A, which is in the plan's buffer `a` then, unless it is the
// last one as it is. What arrives is in the buffer `matrix_upload`, whose memory is given back
// where A is elsewhere. A change that extends the update is in that, but for CompleteUpdate.
// Blocks. INVALID_ARGUMENT as SolveSeriesStep.
absl::StatusOr<FactorSummary> ReadSeriesMatrix(ExecutionContext& context,
                                               const SeriesStepPlan& plan, const SeriesStart& start,
                                               JobBuffers& buffers);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SERIES_MATRIX_H_
