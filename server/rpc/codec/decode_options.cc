// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/decode_options.h"

#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

constexpr int kMaxRefinementSteps = 100;

// Refuses parameters that the pivot rule does not use. Ignoring them would hide the mistake from
// the client.
absl::Status CheckPivotRule(const v1::MethodParameters& parameters) {
  const bool interval = parameters.interval_low() != 0 || parameters.interval_high() != 0;
  if (interval && parameters.pivot_rule() != v1::PIVOT_RULE_INTERVAL) {
    return BadField("options.parameters.interval_low",
                    "only the pivot rule interval uses an interval: set this rule, or leave the "
                    "interval unset");
  }
  if (parameters.threshold() != 0 && parameters.pivot_rule() != v1::PIVOT_RULE_THRESHOLD) {
    return BadField("options.parameters.threshold",
                    "only the pivot rule threshold uses a threshold: set this rule, or leave the "
                    "threshold unset");
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
      return UnknownValue("options.parameters.pivot_rule", parameters.pivot_rule());
  }
}

// Returns the native value of `value`, the first one for the value 0.
template <class Native, class Enum>
absl::StatusOr<Native> DecodeEnum(Enum value, absl::string_view field,
                                  std::initializer_list<std::pair<Enum, Native>> values) {
  if (static_cast<int>(value) == 0) return values.begin()->second;
  for (const auto& [known, native] : values) {
    if (known == value) return native;
  }
  return UnknownValue(field, value);
}

absl::StatusOr<LuParameters> DecodeParameters(const v1::MethodParameters& parameters) {
  LuParameters decoded;
  CROUT_ASSIGN_OR_RETURN(decoded.pivoting, DecodePivoting(parameters));
  CROUT_ASSIGN_OR_RETURN(
      decoded.variant,
      DecodeEnum<MethodVariant>(parameters.variant(), "options.parameters.variant",
                                {{v1::METHOD_VARIANT_FAST, MethodVariant::kFast},
                                 {v1::METHOD_VARIANT_PUBLISHED, MethodVariant::kPublished}}));
  decoded.tolerance = parameters.tolerance();
  decoded.absolute_tolerance = parameters.absolute_tolerance();
  decoded.section_size = parameters.section_size();
  decoded.block_size = parameters.block_size();
  decoded.sweep_limit = parameters.sweep_limit();
  return decoded;
}

absl::StatusOr<ChangeRequest> DecodeChange(const v1::MatrixChange& change) {
  switch (change.kind_case()) {
    case v1::MatrixChange::kEntries:
      return ChangeRequest{MatrixChange::Kind::kEntries, change.entries(), {}};
    case v1::MatrixChange::kRank:
      return ChangeRequest{MatrixChange::Kind::kLowRank, change.rank(), {}};
    case v1::MatrixChange::kValues:
      return ChangeRequest{MatrixChange::Kind::kValues, change.values(), change.entry_digest()};
    case v1::MatrixChange::KIND_NOT_SET:
      break;
  }
  return BadField("change", "no kind: set entries, rank or values");
}

}  // namespace

absl::StatusOr<FactorRequest> DecodeOptions(const v1::FactorizeOptions& options) {
  FactorRequest request;
  request.device = options.device();
  request.algorithm = AlgorithmName(options.algorithm());
  if (options.has_parameters()) {
    CROUT_ASSIGN_OR_RETURN(request.parameters, DecodeParameters(options.parameters()));
  }
  if (options.factor_dtype() != v1::DTYPE_UNSPECIFIED) {
    CROUT_ASSIGN_OR_RETURN(
        request.factor_dtype,
        DecodeDtype(options.factor_dtype(), DType::kFloat64, "options.factor_dtype"));
  }
  CROUT_ASSIGN_OR_RETURN(request.precision,
                         DecodeEnum<RequestedPrecision>(
                             options.precision(), "options.precision",
                             {{v1::FACTOR_PRECISION_UNSPECIFIED, RequestedPrecision::kFactorType},
                              {v1::FACTOR_PRECISION_AUTO, RequestedPrecision::kAuto},
                              {v1::FACTOR_PRECISION_SINGLE, RequestedPrecision::kSingle},
                              {v1::FACTOR_PRECISION_TF32, RequestedPrecision::kTf32}}));
  CROUT_ASSIGN_OR_RETURN(request.equilibrate, DecodeEnum<EquilibrateMode>(
                                                  options.equilibrate(), "options.equilibrate",
                                                  {{v1::EQUILIBRATE_AUTO, EquilibrateMode::kAuto},
                                                   {v1::EQUILIBRATE_ON, EquilibrateMode::kOn},
                                                   {v1::EQUILIBRATE_OFF, EquilibrateMode::kOff}}));
  request.pivot_threshold = options.pivot_threshold();
  request.keep_matrix = KeepsMatrix(options);
  request.condition = options.condition();
  request.determinant = options.determinant();
  return request;
}

absl::StatusOr<SolveRequest> DecodeOptions(const v1::SolveOptions& options,
                                           absl::string_view field) {
  SolveRequest request{SolverName(options.solver()), {}};
  SolveOptions& decoded = request.options;
  CROUT_ASSIGN_OR_RETURN(decoded.op,
                         DecodeOperation(options.operation(), absl::StrCat(field, ".operation")));
  const int steps = options.max_refinement_steps();
  if (steps < 0 || steps > kMaxRefinementSteps) {
    return BadField(absl::StrCat(field, ".max_refinement_steps"),
                    absl::StrCat(steps, " is not in [0, ", kMaxRefinementSteps, "]"));
  }
  decoded.solver_tolerance = options.solver_tolerance();
  decoded.verify = Verifies(options);
  decoded.componentwise_error = options.componentwise_error();
  decoded.error_bound = options.error_bound();
  decoded.max_refinement_steps = steps;
  decoded.refine_componentwise = options.refine_componentwise();
  return request;
}

absl::StatusOr<SeriesRequest> DecodeSeries(const v1::SolveSeriesHeader& header) {
  const v1::FactorizeOptions& factorize = header.options();
  const std::pair<bool, const char*> refused[] = {
      {!KeepsMatrix(factorize), "options.keep_matrix"},
      {factorize.condition(), "options.condition"},
      {factorize.determinant(), "options.determinant"},
      {!header.cache().request_id().empty(), "cache.request_id"},
  };
  for (const auto& [is_set, field] : refused) {
    if (is_set) return BadField(field, "is not supported in a series: leave it unset");
  }
  if (!header.handle().empty() && header.has_cache()) {
    return BadField("cache",
                    "header.handle is also set, and the lease and name of its factor do not "
                    "change: set only one of the two");
  }
  SeriesRequest series;
  CROUT_ASSIGN_OR_RETURN(series.factor, DecodeOptions(factorize));
  CROUT_ASSIGN_OR_RETURN(
      series.strategy,
      DecodeEnum<SeriesStrategy>(header.strategy(), "strategy",
                                 {{v1::SERIES_STRATEGY_AUTO, SeriesStrategy::kAuto},
                                  {v1::SERIES_STRATEGY_REUSE, SeriesStrategy::kReuse},
                                  {v1::SERIES_STRATEGY_UPDATE, SeriesStrategy::kUpdate},
                                  {v1::SERIES_STRATEGY_REFACTOR, SeriesStrategy::kRefactor}}));
  series.accuracy = header.accuracy();
  if (!(series.accuracy >= 0 && series.accuracy < 1)) {
    return BadField("accuracy", absl::StrCat(series.accuracy, " is not in [0, 1)"));
  }
  CROUT_ASSIGN_OR_RETURN(series.op, DecodeOperation(header.operation(), "operation"));
  return series;
}

absl::StatusOr<SeriesStepRequest> DecodeSeriesStep(const v1::SolveSeriesHeader& header) {
  SeriesStepRequest step;
  if (header.has_change()) {
    CROUT_ASSIGN_OR_RETURN(step.change, DecodeChange(header.change()));
  }
  if (header.has_matrix()) {
    CROUT_ASSIGN_OR_RETURN(step.matrix, DecodeMatrix(header.matrix(), "matrix"));
  }
  CROUT_ASSIGN_OR_RETURN(step.rhs, DecodeMatrix(header.rhs(), "rhs"));
  if (header.has_x0()) {
    CROUT_ASSIGN_OR_RETURN(step.x0, DecodeMatrix(header.x0(), "x0"));
  }
  return step;
}

}  // namespace crout
