// SPDX-License-Identifier: Apache-2.0

// Predicts the memory and the time of a factorization without its matrix.
#ifndef CROUT_SERVER_ENGINE_PLAN_ESTIMATE_H_
#define CROUT_SERVER_ENGINE_PLAN_ESTIMATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/engine.h"
#include "server/engine/plan/factor_step.h"
#include "server/engine/request.h"

namespace crout {

// A factorization that is to be estimated.
struct EstimateRequest {
  int64_t n = 0;
  std::optional<int64_t> nnz;  // number of entries of a matrix that is sent as text or entries
  DType dtype = DType::kFloat64;
  // A cached sparse factor whose pattern the matrix shares. Replaces the other fields of the
  // matrix.
  std::optional<Handle> like;
  FactorRequest factor;
};

struct FactorEstimate : FactorStep::Estimate {
  std::string device;
  double queue_seconds = 0;
  size_t peak_bytes = 0;    // charged peak
  size_t cached_bytes = 0;  // charged size of the cached factor
  bool fits = false;        // the peak fits beside everything that cannot be evicted
};

// `tenant` owns the factor and the analyses of sparse matrices. Errors have the fields of
// EstimateFactorizeRequest.
absl::StatusOr<FactorEstimate> EstimateFactor(Engine& engine, const EstimateRequest& request,
                                              const std::string& tenant);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_ESTIMATE_H_
