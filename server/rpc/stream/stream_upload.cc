// SPDX-License-Identifier: Apache-2.0

// The payloads of a StreamCall: their bytes on the way to the uploads, and the limits on the
// client.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/stream/stream_call.h"
#include "server/rpc/stream/stream_handler.h"

namespace crout {
namespace {

// Field numbers and names of the payloads, which are numbered from 2.
constexpr int kFirstDataField = 2;
constexpr const char* kDataFields[] = {"data", "rhs_data", "x0_data"};
constexpr size_t kSharedBytesPerTurn = size_t{8} << 20;

}  // namespace

void StreamCall::Pump() {
  Advance();
  reader_.UpdateTurn(SteadyNow());
}

void StreamCall::Advance() {
  if (phase() != CallPhase::kPayload || reserving_) return;
  const absl::StatusOr<bool> consumed = Consume();
  if (!consumed.ok()) return End(consumed.status());
  if (!*consumed) return;  // Resume() or ReserveInTask() continues
  if (reader_.half_closed() || RoundIsFull()) return Complete();
  ReadAhead();
}

absl::StatusOr<bool> StreamCall::Consume() {
  ThreadPool* const threads = steps_.slot().releasing.get();
  const auto resume = [self = shared_from_this(), this, threads] {
    threads->Schedule(tenant_, [self, this] { Resume(); });
  };
  size_t copied = 0;  // bytes of shared memory
  while (!RoundIsFull()) {
    // A small message can refer to much shared memory. Copy it in turns, so that this thread also
    // serves other calls.
    if (copied >= kSharedBytesPerTurn) {
      resume();
      return false;
    }
    const std::optional<DataSegment> rest = reader_.Next();
    if (!rest) break;
    if (reader_.AtHeader()) {
      return BadMessageField(
          "header",
          "sent before the payload of the previous step is complete: send all declared "
          "bytes first");
    }
    CROUT_ASSIGN_OR_RETURN(PayloadStep * step, StepFor(rest->field));
    size_t bytes = rest->bytes.size();
    if (rest->region != nullptr) {
      bytes = std::min(bytes, step->upload().max_shared_bytes(*rest->region));
    }
    if (!step->upload().TryReserve(bytes)) {
      ReserveInTask(step, bytes);
      return false;
    }
    CROUT_ASSIGN_OR_RETURN(const size_t taken,
                           step->upload().Append(rest->bytes.first(bytes), resume, rest->region));
    CROUT_RETURN_IF_ERROR(steps_.CheckOrders(core_.engine.quotas));
    reader_.Consume(taken);
    // The device copies a larger piece, in its own memory.
    if (rest->region != nullptr && bytes <= kSharedBytesPerTurn) copied += taken;
    if (taken < bytes) return false;
    received_ = Clock::now();
  }
  if (step_ < steps_.size() && !reader_.half_closed()) {
    CROUT_RETURN_IF_ERROR(steps_[step_].upload().Pause());
  }
  return true;
}

void StreamCall::ReserveInTask(PayloadStep* step, size_t bytes) {
  reserving_ = true;
  SubmitTask(*step->slot().admitting, AdmissionSize(bytes), [this, step, bytes] {
    absl::Status status = step->upload().Reserve(bytes);
    MutexLock lock(&mutex_);
    reserving_ = false;
    if (status.ok()) {
      Pump();
    } else {
      End(std::move(status));
    }
  });
}

// Returns the step for a payload field. Payloads must arrive in order, each in its own field.
absl::StatusOr<PayloadStep*> StreamCall::StepFor(int field) {
  const auto step_index = static_cast<size_t>(field - kFirstDataField);
  if (step_index >= steps_.size()) {
    return BadMessageField(
        kDataFields[step_index],
        "the header declares no such payload: declare its matrix, or leave these bytes out");
  }
  if (step_index < step_) {
    return BadMessageField(kDataFields[step_index],
                           absl::StrCat("sent after ", kDataFields[step_],
                                        ": send the payloads in the order of their fields"));
  }
  while (step_ < step_index) CROUT_RETURN_IF_ERROR(steps_[step_++].upload().Close());
  return &steps_[step_];
}

void StreamCall::Resume() {
  DoWork([this] {
    MutexLock lock(&mutex_);
    Pump();
  });
}

void StreamCall::EnforceLimits(Clock::time_point now) {
  CallBase::EnforceLimits(now);
  {
    MutexLock lock(&mutex_);
    absl::Status status = CheckUpload(now);
    if (!status.ok()) End(std::move(status));
  }
  handler_->EnforceLimits(now);
}

absl::Status StreamCall::CheckUpload(Clock::time_point now) const {
  if (!needs_result()) return absl::OkStatus();  // the steps may be destroyed
  if (BetweenRounds() && core_.draining) {
    return WithReason(absl::UnavailableError("the server is draining: resume the series on "
                                             "another server"),
                      kReasonDraining);
  }
  for (PayloadStep* step : steps_) {
    const auto awaited_since = step->upload().staging_awaited_since();
    if (!awaited_since) continue;
    // The upload waits for a staging buffer of the server, not for the client.
    if (absl::FromChrono(now - *awaited_since) > core_.limits.transfer.idle_timeout) {
      return StagingTimeout();
    }
  }
  absl::Status status = reader_.Check(now);
  if (status.ok() || !BetweenRounds()) return status;
  return WithReason(
      absl::DeadlineExceededError("no step came within the server's --series-idle-timeout: resume "
                                  "the series with the handle of its factor"),
      kReasonSeriesIdle);
}

}  // namespace crout
