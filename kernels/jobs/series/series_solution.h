// SPDX-License-Identifier: Apache-2.0

// The right-hand sides and the solution of a series step.
#ifndef CROUT_KERNELS_JOBS_SERIES_SERIES_SOLUTION_H_
#define CROUT_KERNELS_JOBS_SERIES_SERIES_SOLUTION_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"
#include "kernels/jobs/series/series_step.h"
#include "kernels/numerics/correction.h"
#include "kernels/numerics/gmres.h"
#include "kernels/numerics/operands.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/stop_requested.h"

namespace crout {

// Counts a solve with a factor besides the corrections.
void AddSolve(Correction* done);

// B and X of one step, in the step's buffers. Fills the figures of X in the step's summary. The
// arguments of the constructor must outlive the object. Every function blocks until its result is
// known.
class SeriesSolution {
 public:
  SeriesSolution(ExecutionContext& context, const SeriesStepPlan& plan, JobBuffers& buffers,
                 SeriesStepSummary& summary)
      : context_(context), plan_(plan), buffers_(buffers), summary_(summary) {}

  // Converts B. INVALID_ARGUMENT if an entry is not finite, also in the next function.
  absl::Status ReadRhs();
  // X := the initial guess that arrives, if one does.
  absl::Status ReadInitialGuess();

  CheckedSystem System(const Operand& a) const;
  // X := the initial guess, received or from the last step (null if there is none), and measures
  // it. Columns whose residual is not smaller than that of 0 are set to 0. Returns false if there
  // is no usable guess.
  absl::StatusOr<bool> UseInitialGuess(ResidualCheck& check, const Factorization* last_step);
  // X := M B, counted in `done`.
  absl::Status Apply(InverseOperator& inverse, Correction* done);
  // Measures X, the old factor applied to B, and returns the factor by which it reduced the
  // residual of 0. Returns 0 for several columns, whose gains do not predict the remaining errors.
  absl::StatusOr<double> MeasureInitialGain(ResidualCheck& check);
  // Improves X with M, an approximate inverse of A, until it is accurate or further work does not
  // help.
  absl::Status Improve(ResidualCheck& check, InverseOperator& inverse, const GmresLimits& limits,
                       Correction* done, StopRequested stop);
  // Assesses X. If X is as accurate as required but still in doubt, the required accuracy is too
  // low to decide: improves X to float64's accuracy within the other limits and assesses it again.
  absl::Status Settle(ResidualCheck& check, InverseOperator& inverse, GmresLimits limits,
                      Correction* done, StopRequested stop);
  // Returns true if the current X is acceptable.
  bool IsAccepted() const;
  // Rounds X to the type of B and writes it to `out` as Solve does.
  absl::Status Deliver(const Operand& a, std::byte* out);

 private:
  // Computes X's residual and the largest modulus in each of its columns. The caller must still
  // call check.Read().
  absl::Status MeasureWithMaxima(ResidualCheck& check, std::vector<double>* residual);
  // Fills the summary's figures of X.
  absl::Status Assess(const ResidualCheck& check);
  absl::Status RoundToOutputType(const Operand& a);

  MatrixOps& ops() { return context_.ops(); }
  int64_t n() const { return plan_.rhs.rows; }
  AnyMatrix Vectors(BufferPlan::Id id) const { return Columns(id, plan_.vector_type); }
  AnyMatrix Columns(BufferPlan::Id id, DType dtype) const {
    return {buffers_[id].data(), dtype, n(), plan_.columns, n()};
  }
  GmresMemory Krylov() const {
    return {buffers_[plan_.krylov].data(), n(), plan_.columns, plan_.vector_type, plan_.restart};
  }

  ExecutionContext& context_;
  const SeriesStepPlan& plan_;
  JobBuffers& buffers_;
  SeriesStepSummary& summary_;
  std::vector<double> rhs_max_;  // largest modulus in each column of B
  std::vector<double> keep_;     // 0 for columns whose initial guess is not used, otherwise 1
};

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SERIES_SERIES_SOLUTION_H_
