// SPDX-License-Identifier: Apache-2.0

// Plans a solve with a cached factor.
#ifndef CROUT_SERVER_ENGINE_PLAN_CACHED_SOLVE_H_
#define CROUT_SERVER_ENGINE_PLAN_CACHED_SOLVE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/engine.h"
#include "server/engine/plan/job_plan.h"
#include "server/engine/plan/solve_step.h"
#include "server/engine/request.h"

namespace crout {

struct CachedSolution : Solution {
  int64_t factor_version = 0;
  bool promoted = false;  // the factor was copied back to its device
};

// Plans a solve with the factor that `pin` holds, of a matrix or of a batch. The plan keeps the
// pin. Errors have the fields of `header.rhs` and `header.options`; FAILED_PRECONDITION for a
// factor that cannot solve systems, and for right-hand sides of another kind or shape than the
// factor's matrix.
absl::StatusOr<std::unique_ptr<JobPlan<CachedSolution>>> PlanCachedSolve(
    Engine& engine, FactorCache::Pin pin, const MatrixSpec& rhs, const SolveRequest& request);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_CACHED_SOLVE_H_
