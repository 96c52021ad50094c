// SPDX-License-Identifier: Apache-2.0

// Solves systems by methods that leave no factors. The steps upload the matrix and the right-hand
// side.
#ifndef CROUT_SERVER_ENGINE_PLAN_DIRECT_SOLVE_STEPS_H_
#define CROUT_SERVER_ENGINE_PLAN_DIRECT_SOLVE_STEPS_H_

#include <memory>
#include <optional>
#include <vector>

#include "kernels/jobs/direct_solve.h"
#include "server/engine/plan/factor_plan.h"
#include "server/engine/plan/solve_step.h"

namespace crout {

class DirectSolveSteps final : public StepPair, public JobPlan<FactorAndSolution> {
 public:
  // Returns true if the algorithm that the request names leaves no factors on some device of this
  // server.
  static bool IsRequested(const Engine& engine, const FactorRequest& request);

  // Checks everything that can be checked before the payloads arrive. Returns INVALID_ARGUMENT for
  // options that require factors.
  static absl::StatusOr<std::unique_ptr<DirectSolveSteps>> Create(
      Engine& engine, const FactorAndSolveRequest& request, DeviceSlot& slot);

  std::vector<PayloadStep*> steps() override { return StepPair::steps(); }
  double PredictSeconds() override;
  absl::StatusOr<std::optional<FactorAndSolution>> FindSingular() override;
  absl::StatusOr<FactorAndSolution> Run(ExecutionContext& context, const JobControl& control,
                                        CallTimings& timings) override;

 private:
  using StepPair::StepPair;

  // The step of the matrix reserves the memory of a solve without right-hand sides. The step of the
  // right-hand side reserves the rest.
  absl::StatusOr<MemoryNeed> PlanMatrix() override;
  absl::StatusOr<MemoryNeed> PlanRhs() override;
  // Returns the shape of the matrix. Until its text has been read, returns the shape that the
  // right-hand side requires.
  PackedMatrix MatrixShape();
  absl::StatusOr<DirectSolvePlan> PlanFor(const PackedMatrix& rhs);
  // Returns a result without summary and solution.
  FactorAndSolution EmptyResult();

  DirectSolveOptions options_;
  std::optional<DirectSolvePlan> plan_;  // set when the right-hand side has been planned
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_DIRECT_SOLVE_STEPS_H_
