// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/options.h"

#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"

namespace crout {

absl::StatusOr<FactorizeOptions> OptionsFor(const FactorRequest& request, DType matrix_dtype) {
  if (request.precision != RequestedPrecision::kFactorType) {
    return BadField("options.precision",
                    "only Factorize, Refactorize, FactorizeAndSolve and EstimateFactorize take it");
  }
  FactorizeOptions options;
  if (request.parameters) options.parameters = *request.parameters;
  options.factor_dtype = request.factor_dtype.value_or(matrix_dtype);
  const absl::Status field = CheckSameField(matrix_dtype, options.factor_dtype);
  if (!field.ok()) return BadField("options.factor_dtype", field.message());
  options.equilibrate = request.equilibrate;
  const double threshold = request.pivot_threshold;
  if (!(threshold >= 0 && threshold <= 1)) {
    return BadField("options.pivot_threshold",
                    absl::StrCat(threshold, " is not in (0, 1]; unset or 0: ", kPivotThreshold));
  }
  options.keep_matrix = request.keep_matrix;
  options.determinant = request.determinant;
  return options;
}

absl::Status Resolve(const FactorRequest& request, const Device& device, int64_t n,
                     FactorizeOptions* options) {
  if (SolvesDirectly(device, request.algorithm)) {
    return absl::FailedPreconditionError(
        absl::StrCat(request.algorithm, " solves and leaves no factors: use FactorizeAndSolve"));
  }
  CROUT_ASSIGN_OR_RETURN(options->algorithm,
                         FindAlgorithm(device, request.algorithm, options->factor_dtype, n));
  const absl::Status taken = CheckParameters(options->algorithm->traits(), options->parameters);
  if (absl::IsUnimplemented(taken)) return taken;
  if (!taken.ok()) return BadField("options.parameters", taken.message());
  if (!request.condition) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(options->condition_solver,
                         FindSolver(device, "auto", options->algorithm->traits().unit_diagonal,
                                    options->factor_dtype, n, /*nrhs=*/1));
  return absl::OkStatus();
}

bool CanStartFrom(const FactorSummary& start, const FactorizeOptions& options) {
  return options.algorithm->traits().iterative && start.kind() == FactorKind::kDense &&
         start.info == 0 && start.n > 0 && start.factor_dtype == options.factor_dtype;
}

}  // namespace crout
