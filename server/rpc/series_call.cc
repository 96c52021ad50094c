// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/series_call.h"

#include <algorithm>
#include <utility>

#include "kernels/util/allocation.h"
#include "kernels/util/status_macros.h"
#include "server/engine/reason.h"
#include "server/rpc/acquire.h"
#include "server/rpc/codec/decode_cache.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/codec/names.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/wire.h"
#include "server/rpc/observe.h"
#include "server/rpc/placement.h"

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

absl::Status MatrixUnavailable() {
  return WithReason(absl::FailedPreconditionError(
                        "the matrix of the last step, or of the handle's factor, is not "
                        "there: send the step with its matrix"),
                    kReasonMatrixGone);
}

}  // namespace

absl::Status SeriesCall::BeginSeries(const v1::SolveSeriesHeader& header) {
  CROUT_ASSIGN_OR_RETURN(setting_, DecodeSeries(header));
  CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  if (header.handle().empty()) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(factor_, DecodeHandle(header.handle()));
  observed_.SetHandle(header.handle());
  return absl::OkStatus();
}

absl::Status SeriesCall::PinFactor() {
  const bool with_matrix = last_matrix_ == LastMatrix::kWithFactor;
  absl::StatusOr<FactorCache::Pin> pin = AcquireDense(core_, tenant_, *factor_);
  if (!pin.ok()) {
    // The factor named by the first header must exist. If a later one is gone, the step makes a new
    // factor.
    if (version_ == 0 || !absl::IsNotFound(pin.status())) return pin.status();
    factor_.reset();
    version_ = 0;
    if (with_matrix) last_matrix_ = LastMatrix::kUnavailable;
    return absl::OkStatus();
  }
  ReleaseOn(pin->slot());
  // Another call may have replaced the factor together with its matrix.
  const bool replaced = version_ != 0 && pin->version() != version_;
  if (with_matrix && (replaced || !pin->has_matrix())) last_matrix_ = LastMatrix::kUnavailable;
  if (replaced) update_rank_ = 0;  // the update applied to the replaced factor
  version_ = pin->version();
  const bool solves = CheckSolvable(pin->summary()).ok();
  (solves ? pins_.factor : pins_.singular).emplace(*std::move(pin));
  return absl::OkStatus();
}

absl::Status SeriesCall::PinMatrix() {
  if (last_matrix_ == LastMatrix::kCached) {
    absl::StatusOr<FactorCache::Pin> pin = core_.cache.Acquire(tenant_, *cached_matrix_);
    if (!pin.ok()) return MatrixUnavailable();
    pins_.matrix.emplace(*std::move(pin));
    pins_.update_rank = update_rank_;
    return absl::OkStatus();
  }
  if (last_matrix_ == LastMatrix::kWithFactor && pins_.factor) return absl::OkStatus();
  if (factor_ || last_matrix_ != LastMatrix::kWithFactor) return MatrixUnavailable();
  return BadField("header.matrix",
                  "missing: the first step of a series has a matrix, or the header a handle");
}

absl::Status SeriesCall::PinMap() {
  pins_.entries = entries_;
  // SeriesSteps refuses new values if the last matrix has no list of entries.
  if (entries_.form != SeriesEntries::Form::kSparse) return absl::OkStatus();
  if (!cached_map_) return MatrixUnavailable();
  absl::StatusOr<FactorCache::Pin> pin = core_.cache.Acquire(tenant_, *cached_map_);
  if (!pin.ok() || &pin->slot() != PinnedDevice()) return MatrixUnavailable();
  pins_.map.emplace(*std::move(pin));
  return absl::OkStatus();
}

absl::Status SeriesCall::PinEntries(const v1::SolveSeriesHeader& header) {
  if (factor_) CROUT_RETURN_IF_ERROR(PinFactor());
  if (cached_solution_) {
    // The previous solution is optional: without it the step needs more iterations.
    absl::StatusOr<FactorCache::Pin> pin = core_.cache.Acquire(tenant_, *cached_solution_);
    if (pin.ok()) pins_.solution.emplace(*std::move(pin));
  }
  if (header.has_matrix()) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(PinMatrix());
  return header.change().has_values() ? PinMap() : absl::OkStatus();
}

DeviceSlot* SeriesCall::PinnedDevice() const {
  for (const auto* pin : {&pins_.factor, &pins_.singular, &pins_.matrix}) {
    if (*pin) return &(*pin)->slot();
  }
  return nullptr;
}

absl::StatusOr<std::vector<PayloadStep*>> SeriesCall::Start(const StreamMessage& first) {
  v1::SolveSeriesHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  if (!setting_) {
    CROUT_RETURN_IF_ERROR(BeginSeries(header));
  } else if (SetsSeries(header)) {
    return BadField("header", "only matrix, change, rhs and x0 may be set after the first step");
  }
  CROUT_RETURN_IF_ERROR(PinEntries(header));
  const auto make = [&](DeviceSlot& slot) {
    return SeriesSteps::Create(
        core_, header, *setting_, tenant_, pins_,
        [this](double factor_seconds, double iteration_seconds) {
          if (!model_) {
            model_.emplace(factor_seconds, iteration_seconds);
            model_->RecordRefactorization(first_seconds_, {});
          }
          return model_->Budget();
        },
        slot);
  };
  const std::string& device = setting_->factorize.device();
  DeviceSlot* const there = PinnedDevice();
  if (there == nullptr) {
    CROUT_ASSIGN_OR_RETURN(round_, PlaceStep(core_, device, make));
    if (pins_.solution && &pins_.solution->slot() != &round_->slot()) pins_.solution.reset();
    return round_->steps();
  }
  if (!device.empty() && device != there->device->info().name) {
    return BadField("header.options.device",
                    absl::StrCat("the series' factor is on ", there->device->info().name,
                                 ": leave the device out"));
  }
  CROUT_ASSIGN_OR_RETURN(round_, make(*there));
  return round_->steps();
}

absl::StatusOr<SeriesAnswer> SeriesCall::Run(ExecutionContext& context, CallTimings& timings) {
  const int64_t n = round_->n();
  return round_->Run(
      context, [&] { return StopFactoring(context, n); }, timings);
}

void SeriesCall::UpdateModel(const SeriesAnswer& answer) {
  const SeriesStepSummary& summary = answer.summary;
  if (!model_) {
    first_seconds_ = summary.new_seconds;
  } else if (answer.factor && answer.factor->factorization.summary.info > 0) {
    model_->RecordFailure(SeriesTryOf(summary));
  } else if (answer.factor) {
    model_->RecordRefactorization(summary.new_seconds, SeriesTryOf(summary));
  } else {
    model_->RecordReuse(SeriesTryOf(summary));
  }
}

absl::StatusOr<FactorInfo> SeriesCall::StoreFactor(NewFactor factor) {
  if (factor.factorization.summary.info > 0) {
    FactorInfo dropped = DescribeDropped(std::move(factor));
    dropped.version = 0;
    return dropped;
  }
  // If the old factor was released while the step ran, insert the new factor under a new handle.
  if (factor_ && core_.cache.Describe(tenant_, *factor_).ok()) {
    return core_.cache.Replace(tenant_, *factor_, std::move(factor));
  }
  FactorInfo info = core_.cache.Insert(std::move(factor), insert_);
  factor_ = info.handle;
  observed_.factor_bytes = info.bytes;
  observed_.SetHandle(info.handle.ToString());
  return info;
}

void SeriesCall::StoreEntry(std::optional<Handle>& handle, NewFactor part) {
  if (handle && core_.cache.Describe(tenant_, *handle).ok()) {
    // Replace() fails if the entry was just evicted. Treat the part as evicted.
    if (!core_.cache.Replace(tenant_, *handle, std::move(part)).ok()) handle.reset();
    return;
  }
  InsertOptions options;
  options.tenant = tenant_;
  options.lease = core_.limits.max_lease;
  options.listed = false;
  handle = core_.cache.Insert(std::move(part), options).handle;
}

void SeriesCall::ReleaseEntry(std::optional<Handle>& handle) {
  // Ignore an error: the entry may already be evicted.
  if (handle) core_.cache.Release(tenant_, *handle).IgnoreError();
  handle.reset();
}

absl::StatusOr<std::optional<v1::Factor>> SeriesCall::Store(SeriesAnswer& answer) {
  std::optional<v1::Factor> made;
  ++age_;
  if (answer.has_new_matrix) last_matrix_ = LastMatrix::kUnavailable;  // unless it is kept below
  if (answer.factor) {
    const bool singular = answer.factor->factorization.summary.info > 0;
    answer.factor->timings = ReplyTimings();
    ObserveQuality(core_, observed_, answer.factor->factorization.summary);
    observed_.algorithm = answer.factor->factorization.summary.algorithm;
    CROUT_ASSIGN_OR_RETURN(const FactorInfo info, StoreFactor(*std::move(answer.factor)));
    made = EncodeWithCounts(info);
    update_rank_ = 0;
    if (!singular) {
      ReleaseEntry(cached_matrix_);
      last_matrix_ = LastMatrix::kWithFactor;
      version_ = info.version;
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
  result.set_age(age_);
  result.set_factor_version(version_);
  result.set_device(observed_.device);
  result.set_entry_digest(entries_.digest);
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
  observed_.n = round_->n();
  UpdateModel(answer);
  absl::StatusOr<std::optional<v1::Factor>> factor = Store(answer);
  core_.metrics.device(static_cast<size_t>(round_->slot().index))
      .ObserveSeriesStep(answer.summary, age_);
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
  round_.reset();
  pins_ = {};
  NextRound(core_.limits.series_idle_timeout);
}

void SeriesCall::ReleaseResources() {
  JobCall::ReleaseResources();
  round_.reset();
  pins_ = {};
  ReleaseEntry(cached_matrix_);
  ReleaseEntry(cached_solution_);
  ReleaseEntry(cached_map_);
}

}  // namespace crout
