// SPDX-License-Identifier: Apache-2.0

// SolveSeries: solves a sequence of systems.
#ifndef CROUT_SERVER_RPC_HANDLERS_SERIES_CALL_H_
#define CROUT_SERVER_RPC_HANDLERS_SERIES_CALL_H_

#include <memory>
#include <optional>

#include "server/engine/series/series.h"
#include "server/rpc/stream/job_call.h"

namespace crout {

// Each step of the series is one round of the call.
class SeriesCall final : public JobCall<SeriesAnswer, v1::PHASE_SOLVE> {
 public:
  SeriesCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kSolveSeries, ProgressEvent<v1::SolveSeriesResponse>) {}

 private:
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool InRounds() const override { return true; }
  void Reply(SeriesAnswer answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  absl::Status BeginSeries(const v1::SolveSeriesHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Caches the parts of the answer. Returns the new factor, if the step computed one.
  absl::StatusOr<std::optional<v1::Factor>> Store(SeriesAnswer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::SeriesResult Encode(const SeriesAnswer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::optional<Series> series_;  // from the first header to ReleaseResources()
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_SERIES_CALL_H_
