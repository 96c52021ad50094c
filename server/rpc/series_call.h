// SPDX-License-Identifier: Apache-2.0

// SolveSeries: solves a sequence of systems. Each step can reuse the factor, the matrix and the
// solution of the previous step.
#ifndef CROUT_SERVER_RPC_SERIES_CALL_H_
#define CROUT_SERVER_RPC_SERIES_CALL_H_

#include <memory>
#include <optional>
#include <vector>

#include "kernels/costs/series_model.h"
#include "server/rpc/job_call.h"
#include "server/rpc/series_steps.h"

namespace crout {

// Each step of the series is one round of the call. Between rounds the call holds only handles. The
// factor, matrix, solution and map for the next step are cache entries: they count against the
// budgets of the cache and may be evicted.
class SeriesCall final : public JobCall<SeriesAnswer, v1::PHASE_SOLVE> {
 public:
  SeriesCall(ServerCore& core, grpc::CallbackServerContext* context)
      : JobCall(core, context, Method::kSolveSeries, ProgressEvent<v1::SolveSeriesResponse>) {}

 private:
  // Location of the previous step's matrix: not available, cached with the factor, or cached as
  // cached_matrix_.
  enum class LastMatrix { kUnavailable, kWithFactor, kCached };

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
  // Pins the factor factor_. If the factor of an earlier step is gone, resets factor_ instead.
  absl::Status PinFactor() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Pins the cache entries that the step starts from.
  absl::Status PinEntries(const v1::SolveSeriesHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // PinMatrix() pins the matrix of the previous step; PinMap() pins the map of its entries.
  absl::Status PinMatrix() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PinMap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the device of the pinned factor or matrix; null if neither is pinned.
  DeviceSlot* PinnedDevice() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Inserts the parts of the answer into the cache. Returns the description of the new factor, if
  // the step computed one.
  absl::StatusOr<std::optional<v1::Factor>> Store(SeriesAnswer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<FactorInfo> StoreFactor(NewFactor factor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Caches a part for the next step as an unlisted entry; replaces the entry of `handle`, if any.
  void StoreEntry(std::optional<Handle>& handle, NewFactor part)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseEntry(std::optional<Handle>& handle);
  void UpdateModel(const SeriesAnswer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::SeriesResult Encode(const SeriesAnswer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::optional<SeriesSetting> setting_;  // from the first header on
  InsertOptions insert_;
  std::optional<SeriesModel> model_;  // created when a step first asks for an iteration budget
  double first_seconds_ = 0;  // seconds for a new factor before model_ exists; 0: no new one
  std::optional<Handle> factor_;
  std::optional<Handle> cached_matrix_;
  std::optional<Handle> cached_solution_;
  std::optional<Handle> cached_map_;
  SeriesEntries entries_;  // of the last uploaded matrix
  LastMatrix last_matrix_ = LastMatrix::kWithFactor;
  int64_t update_rank_ = 0;  // rank of the update from `factor_` kept with cached_matrix_; 0: none
  int64_t version_ = 0;      // last seen version of the factor; 0: no factor was pinned yet
  int64_t age_ = 0;

  // State of one round; constant from Start() to Reply() or ReleaseResources().
  SeriesPins pins_;
  std::unique_ptr<SeriesSteps> round_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SERIES_CALL_H_
