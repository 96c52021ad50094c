// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/decode_options.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kernels/algorithm_registry.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/codec/decode_field.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

constexpr int kMaxRefinementSteps = 100;

// Refuses parameters that the pivot rule does not use. If they were ignored, the client would not
// notice the mistake.
absl::Status CheckPivotRule(const v1::MethodParameters& parameters) {
  const bool interval = parameters.interval_low() != 0 || parameters.interval_high() != 0;
  if (interval && parameters.pivot_rule() != v1::PIVOT_RULE_INTERVAL) {
    return BadField("header.options.parameters.interval_low",
                    "only the pivot rule interval uses an interval: set pivot_rule to it, or leave "
                    "the interval out");
  }
  if (parameters.threshold() != 0 && parameters.pivot_rule() != v1::PIVOT_RULE_THRESHOLD) {
    return BadField("header.options.parameters.threshold",
                    "only the pivot rule threshold uses a threshold: set pivot_rule to it, or "
                    "leave the threshold out");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<PivotCriterion>> DecodePivoting(
    const v1::MethodParameters& parameters) {
  CROUT_RETURN_IF_ERROR(CheckPivotRule(parameters));
  PivotCriterion criterion;
  switch (parameters.pivot_rule()) {
    case v1::PIVOT_RULE_UNSPECIFIED:
      return std::optional<PivotCriterion>();
    case v1::PIVOT_RULE_PARTIAL:
      criterion.rule = PivotRule::kPartial;
      return std::optional(criterion);
    case v1::PIVOT_RULE_INTERVAL:
      criterion.rule = PivotRule::kInterval;
      if (parameters.interval_low() != 0 || parameters.interval_high() != 0) {
        criterion.low = parameters.interval_low();
        criterion.high = parameters.interval_high();
      }
      return std::optional(criterion);
    case v1::PIVOT_RULE_THRESHOLD:
      criterion.rule = PivotRule::kThreshold;
      if (parameters.threshold() != 0) criterion.threshold = parameters.threshold();
      return std::optional(criterion);
    default:
      return UnknownValue("header.options.parameters.pivot_rule", parameters.pivot_rule());
  }
}

absl::StatusOr<MethodVariant> DecodeVariant(v1::MethodVariant variant) {
  switch (variant) {
    case v1::METHOD_VARIANT_UNSPECIFIED:
    case v1::METHOD_VARIANT_FAST:
      return MethodVariant::kFast;
    case v1::METHOD_VARIANT_PUBLISHED:
      return MethodVariant::kPublished;
    default:
      return UnknownValue("header.options.parameters.variant", variant);
  }
}

absl::StatusOr<LuParameters> DecodeParameters(const v1::MethodParameters& parameters) {
  LuParameters decoded;
  CROUT_ASSIGN_OR_RETURN(decoded.pivoting, DecodePivoting(parameters));
  CROUT_ASSIGN_OR_RETURN(decoded.variant, DecodeVariant(parameters.variant()));
  decoded.tolerance = parameters.tolerance();
  decoded.absolute_tolerance = parameters.absolute_tolerance();
  decoded.section_size = parameters.section_size();
  decoded.block_size = parameters.block_size();
  decoded.sweep_limit = parameters.sweep_limit();
  return decoded;
}

}  // namespace

absl::StatusOr<DType> DecodeProblem(const v1::EstimateFactorizeRequest& request,
                                    const Limits& limits) {
  Limits most = limits;
  if (request.has_nnz()) most.max_n = std::max(limits.max_n, limits.max_sparse_n);
  CROUT_RETURN_IF_ERROR(CheckDimension(request.n(), "n", most));
  if (request.nnz() < 0 || request.nnz() > request.n() * request.n()) {
    return BadField("nnz", absl::StrCat(request.nnz(), " is not in [0, ", request.n() * request.n(),
                                        "], of a matrix of order ", request.n()));
  }
  return DecodeDtype(request.matrix_dtype(), DType::kFloat64, "matrix_dtype");
}

absl::StatusOr<FactorizeOptions> DecodeOptions(const v1::FactorizeOptions& options,
                                               DType matrix_dtype) {
  if (options.precision() != v1::FACTOR_PRECISION_UNSPECIFIED) {
    return BadField("header.options.precision",
                    "only Factorize, Refactorize, FactorizeAndSolve and EstimateFactorize take it");
  }
  FactorizeOptions decoded;
  CROUT_ASSIGN_OR_RETURN(decoded.parameters, DecodeParameters(options.parameters()));
  CROUT_ASSIGN_OR_RETURN(decoded.factor_dtype, DecodeDtype(options.factor_dtype(), matrix_dtype,
                                                           "header.options.factor_dtype"));
  const absl::Status field = CheckSameField(matrix_dtype, decoded.factor_dtype);
  if (!field.ok()) return BadField("header.options.factor_dtype", field.message());
  switch (options.equilibrate()) {
    case v1::EQUILIBRATE_UNSPECIFIED:
    case v1::EQUILIBRATE_AUTO:
      decoded.equilibrate = EquilibrateMode::kAuto;
      break;
    case v1::EQUILIBRATE_ON:
      decoded.equilibrate = EquilibrateMode::kOn;
      break;
    case v1::EQUILIBRATE_OFF:
      decoded.equilibrate = EquilibrateMode::kOff;
      break;
    default:
      return UnknownValue("header.options.equilibrate", options.equilibrate());
  }
  const double threshold = options.pivot_threshold();
  if (!(threshold >= 0 && threshold <= 1)) {
    return BadField("header.options.pivot_threshold",
                    absl::StrCat(threshold, " is not in (0, 1]; unset or 0: ", kPivotThreshold));
  }
  decoded.keep_matrix = !options.drop_matrix();
  decoded.determinant = options.determinant();
  return decoded;
}

absl::Status Resolve(const v1::FactorizeOptions& options, const Device& device, int64_t n,
                     FactorizeOptions* decoded) {
  const std::string name = AlgorithmName(options.algorithm());
  if (SolvesDirectly(device, name)) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " solves and leaves no factors: use FactorizeAndSolve"));
  }
  CROUT_ASSIGN_OR_RETURN(decoded->algorithm, FindAlgorithm(device, name, decoded->factor_dtype, n));
  const absl::Status taken = CheckParameters(decoded->algorithm->traits(), decoded->parameters);
  if (absl::IsUnimplemented(taken)) return taken;
  if (!taken.ok()) return BadField("header.options.parameters", taken.message());
  if (!options.condition()) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(decoded->condition_solver,
                         FindSolver(device, "auto", decoded->algorithm->traits().unit_diagonal,
                                    decoded->factor_dtype, n, /*nrhs=*/1));
  return absl::OkStatus();
}

absl::StatusOr<SolveOptions> DecodeOptions(const v1::SolveOptions& options,
                                           absl::string_view field) {
  SolveOptions decoded;
  CROUT_ASSIGN_OR_RETURN(decoded.op, DecodeOperation(options.operation(), field));
  const int steps = options.max_refinement_steps();
  if (steps < 0 || steps > kMaxRefinementSteps) {
    return BadField(absl::StrCat(field, ".max_refinement_steps"),
                    absl::StrCat(steps, " is not in [0, ", kMaxRefinementSteps, "]"));
  }
  decoded.solver_tolerance = options.solver_tolerance();
  decoded.verify = !options.skip_verification();
  decoded.componentwise_error = options.componentwise_error();
  decoded.error_bound = options.error_bound();
  decoded.max_refinement_steps = steps;
  decoded.refine_componentwise = options.refine_componentwise();
  return decoded;
}

}  // namespace crout
