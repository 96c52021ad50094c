// SPDX-License-Identifier: Apache-2.0

// SolveSeries: systems one after the other, each from what is there of the last one.
#ifndef CROUT_SERVER_RPC_SERIES_CALL_H_
#define CROUT_SERVER_RPC_SERIES_CALL_H_

#include <memory>
#include <optional>
#include <vector>

#include "kernels/costs/series_model.h"
#include "server/rpc/job_call.h"
#include "server/rpc/series_steps.h"

namespace crout {

// A step is a round of the call. Between rounds it has handles alone: what the next step starts
// from is in the cache, under the budgets of the cache, and can be evicted from there.
class SeriesCall final : public JobCall<SeriesAnswer, v1::PHASE_SOLVE> {
 public:
  SeriesCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kSolveSeries, ProgressEvent<v1::SolveSeriesResponse>) {}

 private:
  // Where A of the last step is.
  enum class LastMatrix { kGone, kWithFactor, kKept };

  absl::StatusOr<std::vector<PayloadStep*>> Start(const StreamMessage& first) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool InRounds() const override { return true; }
  double PredictSeconds() override { return round_->PredictSeconds(); }
  absl::StatusOr<SeriesAnswer> Run(ExecutionContext& context, CallTimings& timings) override;
  absl::StatusOr<std::optional<SeriesAnswer>> FindSingular() override {
    return round_->FindSingular();
  }
  void Reply(SeriesAnswer answer) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseResources() override;

  absl::Status BeginSeries(const v1::SolveSeriesHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Holds the factor, if there is one.
  absl::Status TakeFactor() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Holds what the step starts from.
  absl::Status TakePins(const v1::SolveSeriesHeader& header) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Holds the last matrix, where the step needs it, and the map of its text.
  absl::Status TakeMatrix() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeMap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // That of what the step starts from; null where it starts from nothing.
  DeviceSlot* DeviceThere() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The answer's parts to the cache; the new factor's description, if one was made.
  absl::StatusOr<std::optional<v1::Factor>> Store(SeriesAnswer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<FactorInfo> StoreFactor(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps a part for the next step, unlisted, in place of the one before.
  void Keep(std::optional<Handle>& handle, NewFactor part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(std::optional<Handle>& handle);
  void Learn(const SeriesAnswer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::SeriesResult Encode(const SeriesAnswer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::optional<SeriesSetting> setting_;  // from the first header on
  InsertOptions insert_;
  std::optional<SeriesModel> model_;  // from the second step on
  double first_seconds_ = 0;          // on a new factor, in the first; 0: there was a factor
  std::optional<Handle> factor_;
  std::optional<Handle> kept_matrix_;
  std::optional<Handle> kept_solution_;
  std::optional<Handle> kept_map_;
  SeriesEntries entries_;  // of the last matrix that a step brought
  LastMatrix last_matrix_ = LastMatrix::kWithFactor;
  int64_t update_rank_ = 0;  // of the update of `factor_` beside kept_matrix_; 0: there is none
  int64_t version_ = 0;      // of the factor, as last seen; 0: none was
  int64_t age_ = 0;

  // Of a round; constant from Start() to Reply() or ReleaseResources().
  SeriesPins pins_;
  std::unique_ptr<SeriesSteps> round_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SERIES_CALL_H_
