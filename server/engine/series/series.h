// SPDX-License-Identifier: Apache-2.0

// A sequence of systems. Each step can reuse the factor, the matrix and the solution of the
// previous step.
#ifndef CROUT_SERVER_ENGINE_SERIES_SERIES_H_
#define CROUT_SERVER_ENGINE_SERIES_SERIES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/costs/series_model.h"
#include "server/engine/engine.h"
#include "server/engine/request.h"
#include "server/engine/series/series_steps.h"

namespace crout {

// Between steps a series holds only handles. The factor, matrix, solution and map for the next step
// are cache entries: they count against the budgets of the cache and may be evicted. The destructor
// releases them, except the factor. Not thread-safe.
class Series {
 public:
  // `factor` is the cached factor that the first step may reuse. `insert` has the cache options of
  // new factors; `entry_lease` is the lease of the other entries.
  Series(Engine& engine, SeriesRequest request, InsertOptions insert, absl::Duration entry_lease,
         std::optional<Handle> factor);
  Series(const Series&) = delete;  // the steps refer to the series
  Series& operator=(const Series&) = delete;
  ~Series();

  const SeriesRequest& request() const { return request_; }

  // Pins the entries that the step starts from and plans the step. The result refers to the series
  // until EndStep(). Returns NOT_FOUND if the factor named at the start is gone. Returns
  // FAILED_PRECONDITION (reason MATRIX_GONE) if the step needs the last matrix and it is gone.
  absl::StatusOr<std::unique_ptr<SeriesSteps>> BeginStep(const SeriesStepRequest& step);
  // Returns the device of the pinned factor or matrix; null if neither is pinned.
  DeviceSlot* pinned_device() const;
  // Returns the new factor of the answer if the factor of the series is durable; else null.
  NewFactor* Unstored(SeriesAnswer& answer) const;
  // Writes this factor to a file, before Store(). Blocks.
  absl::Status WriteFile(NewFactor& factor);
  // Caches the parts of the answer. Returns the description of the new factor, if the step computed
  // one. A singular factor is dropped; its description has version 0 and no handle.
  absl::StatusOr<std::optional<FactorInfo>> Store(SeriesAnswer& answer);
  // Unpins the entries of the step.
  void EndStep() { pins_ = {}; }

  int64_t age() const { return age_; }  // steps since the factorization of the current factor
  int64_t version() const { return version_; }  // version of the factor; 0: there is none
  // Returns the digest of the entries of the last uploaded matrix (SeriesEntries).
  const std::string& entry_digest() const { return entries_.digest; }

 private:
  // Location of the previous step's matrix: none, with the cached factor, or in cached_matrix_.
  enum class LastMatrix { kUnavailable, kWithFactor, kCached };

  // Pins factor_. If the factor of an earlier step is gone, resets factor_ instead.
  absl::Status PinFactor();
  absl::Status Pin(const SeriesStepRequest& step);
  // PinMatrix() pins the matrix of the previous step; PinMap() pins the map of its entries.
  absl::Status PinMatrix();
  absl::Status PinMap();
  void UpdateModel(const SeriesAnswer& answer);
  absl::StatusOr<FactorInfo> StoreFactor(NewFactor factor);
  // Caches a part for the next step as an unlisted entry; replaces the entry of `handle`, if any.
  void StoreEntry(std::optional<Handle>& handle, NewFactor part);
  void ReleaseEntry(std::optional<Handle>& handle);

  Engine& engine_;
  const SeriesRequest request_;
  const InsertOptions insert_;
  const absl::Duration entry_lease_;
  std::optional<SeriesModel> model_;  // created when a step first requests an iteration budget
  // Used while model_ does not exist: seconds of the last step's factorization; 0: there was none.
  double first_seconds_ = 0;
  std::optional<Handle> factor_;
  std::optional<Handle> cached_matrix_;
  std::optional<Handle> cached_solution_;
  std::optional<Handle> cached_map_;
  SeriesEntries entries_;  // entries of the last uploaded matrix
  LastMatrix last_matrix_ = LastMatrix::kWithFactor;
  int64_t update_rank_ = 0;  // rank of the update of factor_ stored with cached_matrix_; 0: none
  int64_t version_ = 0;      // last seen version of the factor; 0: no factor was pinned yet
  int64_t age_ = 0;
  SeriesPins pins_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SERIES_SERIES_H_
