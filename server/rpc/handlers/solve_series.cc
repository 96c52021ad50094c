// SPDX-License-Identifier: Apache-2.0

// SolveSeries: solves a sequence of systems. Each step of the series is one round of the call.
#include <memory>
#include <optional>
#include <utility>

#include "kernels/util/allocation.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/engine/series/series.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/decode_options.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/handlers/factor_reply.h"
#include "server/rpc/handlers/handlers.h"
#include "server/rpc/stream/job_handler.h"

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

class SeriesHandler final
    : public JobHandler<SeriesAnswer, v1::SolveSeriesResponse, v1::PHASE_SOLVE> {
 public:
  using JobHandler::JobHandler;

 private:
  absl::Status BeginSeries(const v1::SolveSeriesHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    ServerCore& core = call_.core();
    CROUT_ASSIGN_OR_RETURN(SeriesRequest request, DecodeSeries(header));
    CROUT_ASSIGN_OR_RETURN(InsertOptions insert,
                           DecodeCacheOptions(header.cache(), call_.tenant(), core.limits));
    if (insert.durable) {
      return BadField("cache.durable",
                      "a series replaces its factor often and does not make it durable: leave it "
                      "out, or continue the series from the handle of a durable factor");
    }
    std::optional<Handle> factor;
    if (!header.handle().empty()) {
      CROUT_ASSIGN_OR_RETURN(factor, DecodeHandle(header.handle()));
      call_.observed().SetHandle(header.handle());
    } else {
      CROUT_RETURN_IF_ERROR(call_.CheckFactors());
    }
    series_.emplace(core.engine, std::move(request), std::move(insert), core.limits.max_lease,
                    factor);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    v1::SolveSeriesHeader header;
    CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
    if (!series_) {
      CROUT_RETURN_IF_ERROR(BeginSeries(header));
    } else if (SetsSeries(header)) {
      return BadMessageField("header",
                             "only matrix, change, rhs and x0 may be set after the first step");
    }
    CROUT_ASSIGN_OR_RETURN(const SeriesStepRequest step, DecodeSeriesStep(header));
    absl::StatusOr<std::unique_ptr<SeriesSteps>> plan = series_->BeginStep(step);
    if (DeviceSlot* const slot = series_->pinned_device()) call_.ReleaseOn(*slot);
    return plan;
  }

  NewFactor* Unstored(SeriesAnswer& answer) override { return series_->Unstored(answer); }
  absl::Status WriteFile(NewFactor& factor) override { return series_->WriteFile(factor); }

  // Caches the parts of the answer. Returns the new factor, if the step computed one.
  absl::StatusOr<std::optional<v1::Factor>> Store(SeriesAnswer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (answer.factor) ObserveFactor(call_, *answer.factor);
    CROUT_ASSIGN_OR_RETURN(const std::optional<FactorInfo> made, series_->Store(answer));
    if (!made) return std::optional<v1::Factor>();
    return std::optional(EncodeFactor(call_, *made));
  }

  v1::SeriesResult EncodeResult(const SeriesAnswer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
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
    result.set_device(call_.observed().device);
    result.set_entry_digest(series_->entry_digest());
    *result.mutable_timings() = Encode(call_.ReplyTimings());
    if (!summary.solved) return result;
    result.set_backward_error(summary.backward_error);
    result.set_amplification(summary.amplification);
    result.set_solver(SolverFromName(summary.solver));
    AddWarnings({.inaccurate = !summary.accurate, .nearly_singular = summary.nearly_singular},
                result.mutable_warnings());
    return result;
  }

  void Reply(SeriesAnswer answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    const bool solved = answer.summary.solved;
    call_.observed().n = plan_->columns();
    absl::StatusOr<std::optional<v1::Factor>> factor = Store(answer);
    call_.core()
        .metrics.device(static_cast<size_t>(plan_->steps().front()->slot().index))
        .ObserveSeriesStep(answer.summary, series_->age());
    if (!factor.ok()) return call_.End(factor.status());
    v1::SolveSeriesResponse head;
    if (*factor) *head.mutable_factor() = **std::move(factor);
    const v1::SeriesResult result = EncodeResult(answer);
    if (solved) {
      *head.mutable_header()->mutable_solution() = EncodeDense(answer.shape);
      call_.SendData(head, std::move(answer.x),
                     [result](v1::SolveSeriesResponse& last) { *last.mutable_result() = result; });
    } else {
      *head.mutable_result() = result;
      call_.Send([head] { return Serialize(head); });
    }
    FinishRound();
  }

  void FinishRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    // Record the step now. Sending X depends on the client, which may send the next step first.
    AbandonOnBadAlloc([&] {
      call_.mutex().AssertHeld();
      call_.core().observer.EndStep(call_.observed());
    });
    call_.EndRound();
    plan_.reset();
    series_->EndStep();
    call_.NextRound(call_.core().limits.series_idle_timeout);
  }

  bool InRounds() const override { return true; }
  void ReleaseResources() override {
    JobHandler::ReleaseResources();
    series_.reset();
  }

  std::optional<Series> series_;  // from the first header to ReleaseResources()
};

}  // namespace

std::unique_ptr<StreamHandler> MakeSolveSeries(StreamCall& call) {
  return std::make_unique<SeriesHandler>(call);
}

}  // namespace crout
