// SPDX-License-Identifier: Apache-2.0

// Steps of a call that solves without factors: its matrix and its right-hand side.
#ifndef CROUT_SERVER_ENGINE_PLAN_DIRECT_SOLVE_STEPS_H_
#define CROUT_SERVER_ENGINE_PLAN_DIRECT_SOLVE_STEPS_H_

#include <memory>
#include <optional>
#include <vector>

#include "kernels/jobs/direct_solve.h"
#include "server/engine/plan/solve_step.h"

namespace crout {

class DirectSolveSteps final : public StepPair {
 public:
  // Whether the request names an algorithm that, on any device of this server, leaves no factors.
  static bool IsRequested(const Engine& engine, const FactorRequest& request);

  // Checks everything that can be checked before the payloads arrive. Returns INVALID_ARGUMENT for
  // options that require factors.
  static absl::StatusOr<std::unique_ptr<DirectSolveSteps>> Create(
      Engine& engine, const FactorAndSolveRequest& request, DeviceSlot& slot);

  std::optional<int64_t> nnz() { return matrix_.upload().nnz(); }
  double PredictSeconds();

  // Returns whether an empty row or column proves that A is singular, and then fills in `summary`.
  // Requires that the text has been parsed. May block.
  absl::StatusOr<bool> FindSingular(FactorSummary* summary);

  // Returns FAILED_PRECONDITION with the reason why there is no solution.
  static absl::Status CheckSolvable(const FactorSummary& summary);

  // Runs on a worker thread. Adds the phases it runs to `timings`, fills in the parts of `summary`
  // that do not require factors, and sets `solution` unless a column had no pivot.
  absl::Status Run(ExecutionContext& context, StopRequested stop, CallTimings& timings,
                   FactorSummary* summary, std::optional<Solution>* solution);

 private:
  using StepPair::StepPair;

  // The matrix reserves the memory of a solve without right-hand sides. The right-hand side
  // reserves the rest.
  absl::StatusOr<MemoryNeed> PlanMatrix() override;
  absl::StatusOr<MemoryNeed> PlanRhs() override;
  // Shape of the matrix. Until its text has been read, the shape that it must have.
  PackedMatrix MatrixShape();
  absl::StatusOr<DirectSolvePlan> PlanFor(const PackedMatrix& rhs);

  DirectSolveOptions options_;
  std::optional<DirectSolvePlan> plan_;  // set when the right-hand side has been planned
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_DIRECT_SOLVE_STEPS_H_
