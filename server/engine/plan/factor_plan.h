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

// Checks everything that can be checked before the payload arrives, and chooses the device. The
// factor is to be cached. `tenant` owns the analysis of a sparse matrix. Errors have the fields of
// `header.matrix` and `header.options`.
absl::StatusOr<std::unique_ptr<FactorPlan>> PlanFactor(Engine& engine, const MatrixSpec& matrix,
                                                       const FactorRequest& request,
                                                       const std::string& tenant);

// Plans the replacement of `last`, which outlives the plan. The new matrix must have its order; a
// new batch must have its type, number of members, largest sizes, sums and bytes. Otherwise, and
// for a matrix in place of a batch or a batch in place of a matrix, FAILED_PRECONDITION.
absl::StatusOr<std::unique_ptr<FactorPlan>> PlanRefactor(Engine& engine, const MatrixSpec& matrix,
                                                         const FactorRequest& request,
                                                         const std::string& tenant,
                                                         FactorCache::Pin& last);

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

#endif  // CROUT_SERVER_ENGINE_PLAN_FACTOR_PLAN_H_
