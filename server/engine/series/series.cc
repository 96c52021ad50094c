// SPDX-License-Identifier: Apache-2.0

#include "server/engine/series/series.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/error.h"
#include "server/engine/plan/solve_step.h"

namespace crout {
namespace {

absl::Status MatrixUnavailable() {
  return WithReason(
      absl::FailedPreconditionError("the matrix of the last step, or of the handle's factor, is no "
                                    "longer cached: send the step with its matrix"),
      kReasonMatrixGone);
}

}  // namespace

Series::Series(Engine& engine, SeriesRequest request, InsertOptions insert,
               absl::Duration entry_lease, std::optional<Handle> factor)
    : engine_(engine),
      request_(std::move(request)),
      insert_(std::move(insert)),
      entry_lease_(entry_lease),
      factor_(factor) {}

Series::~Series() {
  pins_ = {};
  ReleaseEntry(cached_matrix_);
  ReleaseEntry(cached_solution_);
  ReleaseEntry(cached_map_);
}

absl::Status Series::PinFactor() {
  const bool with_matrix = last_matrix_ == LastMatrix::kWithFactor;
  absl::StatusOr<FactorCache::Pin> pin = AcquireSingle(engine_.cache, insert_.tenant, *factor_);
  if (!pin.ok()) {
    // The factor named at the start must exist. If a later one is gone, the step makes a new
    // factor.
    if (version_ == 0 || !absl::IsNotFound(pin.status())) return pin.status();
    factor_.reset();
    version_ = 0;
    if (with_matrix) last_matrix_ = LastMatrix::kUnavailable;
    return absl::OkStatus();
  }
  // Another call may have replaced the factor together with its matrix.
  const bool replaced = version_ != 0 && pin->version() != version_;
  if (with_matrix && (replaced || !pin->has_matrix())) last_matrix_ = LastMatrix::kUnavailable;
  if (replaced) update_rank_ = 0;  // the update applied to the replaced factor
  version_ = pin->version();
  const bool solves = CheckSolvable(pin->summary()).ok();
  (solves ? pins_.factor : pins_.singular).emplace(*std::move(pin));
  return absl::OkStatus();
}

absl::Status Series::PinMatrix() {
  if (last_matrix_ == LastMatrix::kCached) {
    absl::StatusOr<FactorCache::Pin> pin = engine_.cache.Acquire(insert_.tenant, *cached_matrix_);
    if (!pin.ok()) return MatrixUnavailable();
    pins_.matrix.emplace(*std::move(pin));
    pins_.update_rank = update_rank_;
    return absl::OkStatus();
  }
  if (last_matrix_ == LastMatrix::kWithFactor && pins_.factor) return absl::OkStatus();
  if (factor_ || last_matrix_ != LastMatrix::kWithFactor) return MatrixUnavailable();
  return BadField("matrix",
                  "missing: the first step of a series has a matrix, or the header a handle");
}

absl::Status Series::PinMap() {
  pins_.entries = entries_;
  // SeriesSteps refuses new values if the last matrix has no list of entries.
  if (entries_.form != SeriesEntries::Form::kSparse) return absl::OkStatus();
  if (!cached_map_) return MatrixUnavailable();
  absl::StatusOr<FactorCache::Pin> pin = engine_.cache.Acquire(insert_.tenant, *cached_map_);
  if (!pin.ok() || &pin->slot() != pinned_device()) return MatrixUnavailable();
  pins_.map.emplace(*std::move(pin));
  return absl::OkStatus();
}

absl::Status Series::Pin(const SeriesStepRequest& step) {
  if (factor_) CROUT_RETURN_IF_ERROR(PinFactor());
  if (cached_solution_) {
    // The previous solution is optional: without it the step needs more iterations.
    absl::StatusOr<FactorCache::Pin> pin = engine_.cache.Acquire(insert_.tenant, *cached_solution_);
    if (pin.ok()) pins_.solution.emplace(*std::move(pin));
  }
  if (step.matrix) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(PinMatrix());
  const bool values = step.change && step.change->kind == MatrixChange::Kind::kValues;
  return values ? PinMap() : absl::OkStatus();
}

DeviceSlot* Series::pinned_device() const {
  for (const auto* pin : {&pins_.factor, &pins_.singular, &pins_.matrix}) {
    if (*pin) return &(*pin)->slot();
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<SeriesSteps>> Series::BeginStep(const SeriesStepRequest& step) {
  CROUT_RETURN_IF_ERROR(Pin(step));
  const auto make = [&](DeviceSlot& slot) {
    return SeriesSteps::Create(
        engine_, step, request_, insert_.tenant, pins_,
        [this](double factor_seconds, double iteration_seconds) {
          if (!model_) {
            model_.emplace(factor_seconds, iteration_seconds);
            model_->RecordRefactorization(first_seconds_, {});
          }
          return model_->Budget();
        },
        slot);
  };
  const std::string& device = request_.factor.device;
  DeviceSlot* const there = pinned_device();
  if (there == nullptr) {
    CROUT_ASSIGN_OR_RETURN(auto steps, PlaceJob(engine_, device, make));
    if (pins_.solution && &pins_.solution->slot() != &steps->slot()) pins_.solution.reset();
    return steps;
  }
  if (!device.empty() && device != there->device->info().name) {
    return BadField("options.device",
                    absl::StrCat("the series' factor is on ", there->device->info().name,
                                 ": leave the device out"));
  }
  return make(*there);
}

void Series::UpdateModel(const SeriesAnswer& answer) {
  const SeriesStepSummary& summary = answer.summary;
  if (!model_) {
    first_seconds_ = summary.new_seconds;
  } else if (answer.factor && answer.factor->factorization.summary.info > 0) {
    model_->RecordFailure(SeriesAttemptOf(summary));
  } else if (answer.factor) {
    model_->RecordRefactorization(summary.new_seconds, SeriesAttemptOf(summary));
  } else {
    model_->RecordReuse(SeriesAttemptOf(summary));
  }
}

NewFactor* Series::Unstored(SeriesAnswer& answer) const {
  const auto& old = pins_.factor ? pins_.factor : pins_.singular;
  if (!old || !old->durable() || !answer.factor) return nullptr;
  return answer.factor->factorization.summary.info > 0 ? nullptr : &*answer.factor;
}

absl::Status Series::WriteFile(NewFactor& factor) {
  return engine_.cache.StoreForReplace(factor, insert_.tenant, *factor_);
}

absl::StatusOr<FactorInfo> Series::StoreFactor(NewFactor factor) {
  if (factor.factorization.summary.info > 0) {
    FactorInfo dropped = DescribeDropped(std::move(factor));
    dropped.version = 0;
    return dropped;
  }
  // If the old factor was released while the step ran, insert the new factor under a new handle.
  if (factor_ && engine_.cache.Describe(insert_.tenant, *factor_).ok()) {
    return engine_.cache.Replace(insert_.tenant, *factor_, std::move(factor));
  }
  factor.written.reset();  // the file of the released factor
  CROUT_ASSIGN_OR_RETURN(FactorInfo info, engine_.cache.Insert(std::move(factor), insert_));
  factor_ = info.handle;
  return info;
}

void Series::StoreEntry(std::optional<Handle>& handle, NewFactor part) {
  if (handle && engine_.cache.Describe(insert_.tenant, *handle).ok()) {
    // Replace() fails if the entry was just evicted. Treat the part as evicted.
    if (!engine_.cache.Replace(insert_.tenant, *handle, std::move(part)).ok()) handle.reset();
    return;
  }
  InsertOptions options;
  options.tenant = insert_.tenant;
  options.lease = entry_lease_;
  options.listed = false;
  const absl::StatusOr<FactorInfo> inserted = engine_.cache.Insert(std::move(part), options);
  handle.reset();
  if (inserted.ok()) handle = inserted->handle;
}

void Series::ReleaseEntry(std::optional<Handle>& handle) {
  // Ignore an error: the entry may already be evicted.
  if (handle) engine_.cache.Release(insert_.tenant, *handle).IgnoreError();
  handle.reset();
}

absl::StatusOr<std::optional<FactorInfo>> Series::Store(SeriesAnswer& answer) {
  UpdateModel(answer);
  std::optional<FactorInfo> made;
  ++age_;
  // A new matrix is available only if it is cached below.
  if (answer.has_new_matrix) last_matrix_ = LastMatrix::kUnavailable;
  if (answer.factor) {
    CROUT_ASSIGN_OR_RETURN(made, StoreFactor(*std::move(answer.factor)));
    update_rank_ = 0;
    if (made->summary.info == 0) {
      ReleaseEntry(cached_matrix_);
      last_matrix_ = LastMatrix::kWithFactor;
      version_ = made->version;
      age_ = 0;
    }
  }
  if (answer.matrix) {
    last_matrix_ = LastMatrix::kCached;
    update_rank_ = answer.summary.update_rank;
    StoreEntry(cached_matrix_, *std::move(answer.matrix));
    if (!cached_matrix_) last_matrix_ = LastMatrix::kUnavailable;
  } else if (last_matrix_ == LastMatrix::kUnavailable) {
    ReleaseEntry(cached_matrix_);
  }
  if (answer.has_new_matrix) entries_ = std::move(answer.entries);
  if (answer.map && last_matrix_ != LastMatrix::kUnavailable) {
    StoreEntry(cached_map_, *std::move(answer.map));
  } else if (answer.has_new_matrix) {
    ReleaseEntry(cached_map_);
  }
  if (answer.solution) {
    StoreEntry(cached_solution_, *std::move(answer.solution));
  } else {
    ReleaseEntry(cached_solution_);
  }
  return made;
}

}  // namespace crout
