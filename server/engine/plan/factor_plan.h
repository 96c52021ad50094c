// SPDX-License-Identifier: Apache-2.0

// Plans the factorization of a matrix or of a batch.
#ifndef CROUT_SERVER_ENGINE_PLAN_FACTOR_PLAN_H_
#define CROUT_SERVER_ENGINE_PLAN_FACTOR_PLAN_H_

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

// Plans a factorization whose factor is cached. Chooses the device and checks everything that can
// be checked before the payload arrives. `tenant` owns the analysis of a sparse matrix. Errors name
// fields of `matrix` and `options`.
absl::StatusOr<std::unique_ptr<FactorPlan>> PlanFactor(Engine& engine, const MatrixSpec& matrix,
                                                       const FactorRequest& request,
                                                       const std::string& tenant);

// Plans the replacement of the factor `last`, which outlives the plan. A matrix can replace a
// matrix of the same order. A batch can replace a batch of the same type with the same number of
// members, largest sizes, sums of sizes, and bytes. FAILED_PRECONDITION for all other replacements.
absl::StatusOr<std::unique_ptr<FactorPlan>> PlanRefactor(Engine& engine, const MatrixSpec& matrix,
                                                         const FactorRequest& request,
                                                         const std::string& tenant,
                                                         FactorCache::Pin& last);

struct FactorAndSolution : FactorResult {
  bool has_factor = true;  // false: the method leaves no factors, and `factor` describes A alone
  std::optional<Solution> solution;
  absl::Status unsolved;  // the reason why there is no solution; OK if there is one
};

// Plans a factorization and a solve. Chooses the device, and a method that leaves factors or a
// direct one. Checks everything that can be checked before the payloads arrive. `tenant` owns the
// analysis of a sparse matrix. Errors name fields of FactorizeAndSolveHeader.
absl::StatusOr<std::unique_ptr<JobPlan<FactorAndSolution>>> PlanFactorAndSolve(
    Engine& engine, const FactorAndSolveRequest& request, const std::string& tenant);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_FACTOR_PLAN_H_
