// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/decode_series.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/codec/decode_field.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

absl::StatusOr<SeriesStrategy> DecodeStrategy(v1::SeriesStrategy strategy) {
  switch (strategy) {
    case v1::SERIES_STRATEGY_UNSPECIFIED:
    case v1::SERIES_STRATEGY_AUTO:
      return SeriesStrategy::kAuto;
    case v1::SERIES_STRATEGY_REUSE:
      return SeriesStrategy::kReuse;
    case v1::SERIES_STRATEGY_UPDATE:
      return SeriesStrategy::kUpdate;
    case v1::SERIES_STRATEGY_REFACTOR:
      return SeriesStrategy::kRefactor;
    default:
      return UnknownValue("header.strategy", strategy);
  }
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
  return BadField("header.change", "no kind: set entries, rank or values");
}

}  // namespace

absl::StatusOr<SeriesRequest> DecodeSeries(const v1::SolveSeriesHeader& header) {
  const v1::FactorizeOptions& factorize = header.options();
  const std::pair<bool, const char*> refused[] = {
      {!KeepsMatrix(factorize), "header.options.keep_matrix"},
      {factorize.condition(), "header.options.condition"},
      {factorize.determinant(), "header.options.determinant"},
      {!header.cache().request_id().empty(), "header.cache.request_id"},
  };
  for (const auto& [is_set, field] : refused) {
    if (is_set) return BadField(field, "is not supported in a series: leave it unset");
  }
  if (!header.handle().empty() && header.has_cache()) {
    return BadField(
        "header.cache",
        "header.handle is also set, whose lease and name do not change: set only one of the two");
  }
  SeriesRequest series;
  CROUT_ASSIGN_OR_RETURN(series.factor, DecodeOptions(factorize));
  CROUT_ASSIGN_OR_RETURN(series.strategy, DecodeStrategy(header.strategy()));
  series.accuracy = header.accuracy();
  if (!(series.accuracy >= 0 && series.accuracy < 1)) {
    return BadField("header.accuracy", absl::StrCat(series.accuracy, " is not in [0, 1)"));
  }
  CROUT_ASSIGN_OR_RETURN(series.op, DecodeOperation(header.operation(), "header"));
  return series;
}

absl::StatusOr<SeriesStepRequest> DecodeSeriesStep(const v1::SolveSeriesHeader& header) {
  SeriesStepRequest step;
  if (header.has_change()) {
    CROUT_ASSIGN_OR_RETURN(step.change, DecodeChange(header.change()));
  }
  if (header.has_matrix()) {
    CROUT_ASSIGN_OR_RETURN(step.matrix, DecodeMatrix(header.matrix(), "header.matrix"));
  }
  CROUT_ASSIGN_OR_RETURN(step.rhs, DecodeMatrix(header.rhs(), "header.rhs"));
  if (header.has_x0()) {
    CROUT_ASSIGN_OR_RETURN(step.x0, DecodeMatrix(header.x0(), "header.x0"));
  }
  return step;
}

}  // namespace crout
