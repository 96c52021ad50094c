// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/series_call.h"

#include <algorithm>
#include <utility>

#include "kernels/util/allocation.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/wire.h"
#include "server/rpc/observe.h"

namespace crout {
namespace {

bool SetsSeries(const v1::SolveSeriesHeader& header) {
  return !header.handle().empty() || header.has_options() || header.has_cache() ||
         header.strategy() != v1::SERIES_STRATEGY_UNSPECIFIED || header.accuracy() != 0 ||
         header.operation() != v1::OPERATION_UNSPECIFIED;
}

v1::SeriesStrategy StrategyOf(const SeriesStepSummary& summary) {
  if (summary.new_iterations > 0 || !summary.solved) return v1::SERIES_STRATEGY_REFACTOR;
  return summary.update_rank > 0 ? v1::SERIES_STRATEGY_UPDATE : v1::SERIES_STRATEGY_REUSE;
}

}  // namespace

absl::Status SeriesCall::BeginSeries(const v1::SolveSeriesHeader& header) {
  CROUT_ASSIGN_OR_RETURN(SeriesRequest request, DecodeSeries(header));
  CROUT_ASSIGN_OR_RETURN(InsertOptions insert,
                         DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  std::optional<Handle> factor;
  if (!header.handle().empty()) {
    CROUT_ASSIGN_OR_RETURN(factor, DecodeHandle(header.handle()));
    observed_.SetHandle(header.handle());
  }
  series_.emplace(core_.engine, std::move(request), std::move(insert), core_.limits.max_lease,
                  factor);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SeriesCall::Plan>> SeriesCall::MakePlan(const StreamMessage& first) {
  v1::SolveSeriesHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  if (!series_) {
    CROUT_RETURN_IF_ERROR(BeginSeries(header));
  } else if (SetsSeries(header)) {
    return BadField("header", "only matrix, change, rhs and x0 may be set after the first step");
  }
  CROUT_ASSIGN_OR_RETURN(const SeriesStepRequest step, DecodeSeriesStep(header));
  absl::StatusOr<std::unique_ptr<SeriesSteps>> plan = series_->BeginStep(step);
  if (DeviceSlot* const slot = series_->pinned_device()) ReleaseOn(*slot);
  return plan;
}

absl::StatusOr<std::optional<v1::Factor>> SeriesCall::Store(SeriesAnswer& answer) {
  if (answer.factor) {
    const FactorSummary& summary = answer.factor->factorization.summary;
    answer.factor->timings = ReplyTimings();
    ObserveQuality(core_, observed_, summary);
    observed_.algorithm = summary.algorithm;
  }
  CROUT_ASSIGN_OR_RETURN(const std::optional<FactorInfo> made, series_->Store(answer));
  if (!made) return std::optional<v1::Factor>();
  if (made->version > 0) {
    observed_.factor_bytes = made->bytes;
    observed_.SetHandle(made->handle.ToString());
  }
  return std::optional(EncodeWithCounts(*made));
}

v1::SeriesResult SeriesCall::Encode(const SeriesAnswer& answer) {
  const SeriesStepSummary& summary = answer.summary;
  v1::SeriesResult result;
  result.set_solved(summary.solved);
  result.set_accurate(summary.accurate);
  result.set_accuracy(answer.accuracy);
  result.set_strategy(StrategyOf(summary));
  result.set_update_rank(static_cast<int32_t>(summary.update_rank));
  result.set_old_iterations(summary.old_iterations);
  result.set_new_iterations(summary.new_iterations);
  result.set_old_seconds(summary.old_seconds);
  result.set_new_seconds(summary.new_seconds);
  result.set_age(series_->age());
  result.set_factor_version(series_->version());
  result.set_device(observed_.device);
  result.set_entry_digest(series_->entry_digest());
  *result.mutable_timings() = crout::Encode(ReplyTimings());
  if (!summary.solved) return result;
  result.set_backward_error(summary.backward_error);
  result.set_amplification(summary.amplification);
  result.set_solver(SolverFromName(summary.solver));
  AddWarnings({.inaccurate = !summary.accurate, .nearly_singular = summary.nearly_singular},
              result.mutable_warnings());
  return result;
}

void SeriesCall::Reply(SeriesAnswer answer) {
  const bool solved = answer.summary.solved;
  observed_.n = plan_->columns();
  absl::StatusOr<std::optional<v1::Factor>> factor = Store(answer);
  core_.metrics.device(static_cast<size_t>(plan_->steps().front()->slot().index))
      .ObserveSeriesStep(answer.summary, series_->age());
  if (!factor.ok()) return End(factor.status());
  v1::SolveSeriesResponse head;
  if (*factor) *head.mutable_factor() = **std::move(factor);
  const v1::SeriesResult result = Encode(answer);
  if (solved) {
    *head.mutable_header()->mutable_solution() = EncodeDense(answer.shape);
    SendData(head, std::move(answer.x),
             [result](v1::SolveSeriesResponse& last) { *last.mutable_result() = result; });
  } else {
    *head.mutable_result() = result;
    Send([head] { return Serialize(head); });
  }
  FinishRound();
}

void SeriesCall::FinishRound() {
  // Record the step now. Sending X depends on the client, which may send the next step first.
  AbandonOnBadAlloc([&] {
    mutex_.AssertHeld();
    ObserveStep(core_, observed_);
  });
  EndRound();
  plan_.reset();
  series_->EndStep();
  NextRound(core_.limits.series_idle_timeout);
}

void SeriesCall::ReleaseResources() {
  JobCall::ReleaseResources();
  series_.reset();
}

}  // namespace crout
