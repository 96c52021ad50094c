// SPDX-License-Identifier: Apache-2.0

// Plans a job that factors and solves.
#ifndef CROUT_SERVER_ENGINE_PLAN_FACTOR_AND_SOLVE_H_
#define CROUT_SERVER_ENGINE_PLAN_FACTOR_AND_SOLVE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/engine.h"
#include "server/engine/plan/job_plan.h"
#include "server/engine/plan/solve_step.h"
#include "server/engine/request.h"

namespace crout {

struct FactorAndSolution : FactorResult {
  bool has_factor = true;  // false: the method leaves no factors, and `factor` describes A alone
  std::optional<Solution> solution;
  absl::Status unsolved;  // the reason, if there is no solution
};

// Checks everything that can be checked before the payloads arrive, and chooses the device and the
// method: one that leaves factors, or a direct one. `tenant` owns the analysis of a sparse matrix.
// Errors have the fields of FactorizeAndSolveHeader.
absl::StatusOr<std::unique_ptr<JobPlan<FactorAndSolution>>> PlanFactorAndSolve(
    Engine& engine, const FactorAndSolveRequest& request, const std::string& tenant);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_FACTOR_AND_SOLVE_H_
