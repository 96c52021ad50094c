#include "server/rpc/upload_call.h"

#include <algorithm>
#include <utility>

#include "kernels/util/status_macros.h"
#include "server/rpc/status.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

constexpr int kFirstDataField = 2;

}  // namespace

void UploadCall::Begin() {
  const absl::Status status = Enter();
  MutexLock lock(&mutex_);
  if (!status.ok()) return End(status);
  reading_ = true;
  StartRead(&incoming_);
}

void UploadCall::OnReadDone(bool ok) {
  MutexLock lock(&mutex_);
  reading_ = false;
  last_activity_ = Clock::now();
  if (ended()) return;
  if (!ok && context_->IsCancelled()) return;  // The stream broke off: OnCancel says why.
  absl::Status status;
  if (ok) {
    grpc::ByteBuffer buffer;
    buffer.Swap(&incoming_);
    // Copying holds the mutex: the reaction to the message read ahead waits for it, at most for
    // the time of one copy, and the order stays.
    ReadAhead();
    status = HandleMessage(buffer);
  } else {
    half_closed_ = true;
    if (!seen_header_) status = BadField("header", "the stream ended before its first message");
  }
  if (!status.ok()) return End(std::move(status));
  Pump();
}

void UploadCall::ReadAhead() {
  constexpr size_t kInbox = 2;
  if (!admitted_ || reading_ || half_closed_ || inbox_.size() >= kInbox) return;
  reading_ = true;
  StartRead(&incoming_);
}

absl::Status UploadCall::HandleMessage(const grpc::ByteBuffer& buffer) {
  core_.metrics.CountReceived(buffer.Length());
  CROUT_ASSIGN_OR_RETURN(StreamMessage message, StreamMessage::Parse(buffer));
  inbox_.push_back(std::move(message));
  if (!seen_header_) return HandleHeader(inbox_.front());
  if (inbox_.back().has_header()) {
    return BadField("header", "repeated: only the first message carries one");
  }
  return absl::OkStatus();
}

absl::Status UploadCall::HandleHeader(const StreamMessage& message) {
  if (!message.has_header()) {
    return BadField("header", "missing: the first message carries the header");
  }
  seen_header_ = true;
  in_flight_.emplace(core_.metrics);
  CROUT_ASSIGN_OR_RETURN(steps_, Start(message));
  if (steps_.empty()) return absl::OkStatus();
  AdmitDense();
  return absl::OkStatus();
}

void UploadCall::Pump() {
  if (ended() || !admitted_ || reserving_) return;
  const absl::StatusOr<bool> consumed = Consume();
  if (!consumed.ok()) return End(consumed.status());
  if (!*consumed) return;  // Resume() comes.
  if (half_closed_) return Complete();
  ReadAhead();
}

absl::StatusOr<bool> UploadCall::Consume() {
  const auto resume = [self = shared_from_this()] {
    auto* call = static_cast<UploadCall*>(self.get());
    call->core_.releasing.Schedule([self, call] { call->Resume(); });
  };
  for (; !inbox_.empty(); inbox_.pop_front(), segment_ = 0) {
    const std::vector<DataSegment>& segments = inbox_.front().segments();
    for (; segment_ < segments.size(); ++segment_, segment_offset_ = 0) {
      CROUT_ASSIGN_OR_RETURN(PayloadStep * step, StepFor(segments[segment_].field));
      const auto rest = segments[segment_].bytes.subspan(segment_offset_);
      if (!step->upload().TryReserve(rest.size())) {
        ReserveSlowly(step, rest.size());
        return false;
      }
      CROUT_ASSIGN_OR_RETURN(const size_t taken, step->upload().Append(rest, resume));
      segment_offset_ += taken;
      if (taken < rest.size()) return false;
      received_ = Clock::now();
    }
  }
  if (step_ < steps_.size() && !half_closed_) {
    CROUT_RETURN_IF_ERROR(steps_[step_]->upload().Pause());
  }
  return true;
}

void UploadCall::ReserveSlowly(PayloadStep* step, size_t bytes) {
  reserving_ = true;
  core_.blocking.Schedule([self = shared_from_this(), this, step, bytes] {
    if (!BeginWork()) return;
    absl::Status status = step->upload().Reserve(bytes);
    {
      MutexLock lock(&mutex_);
      reserving_ = false;
      if (status.ok()) {
        Pump();
      } else {
        End(std::move(status));
      }
    }
    EndWork();
  });
}

// Payloads arrive one after the other, each in its own field.
absl::StatusOr<PayloadStep*> UploadCall::StepFor(int field) {
  const auto wanted = static_cast<size_t>(field - kFirstDataField);
  if (wanted >= steps_.size()) return BadField("rhs_data", "this call has a single payload");
  if (wanted < step_) return BadField("data", "comes after rhs_data: send the matrix first");
  while (step_ < wanted) CROUT_RETURN_IF_ERROR(steps_[step_++]->upload().Close());
  return steps_[step_];
}

void UploadCall::Resume() {
  MutexLock lock(&mutex_);
  Pump();
}

void UploadCall::AbortIfIdle(Clock::time_point idle_since) {
  Call::AbortIfIdle(idle_since);
  MutexLock lock(&mutex_);
  if (!reading_ || last_activity_ > idle_since) return;
  End(WithReason(absl::DeadlineExceededError("no payload arrived within the upload idle timeout: "
                                             "send the matrix without pausing"),
                 kReasonUploadIdle));
}

absl::StatusOr<size_t> UploadCall::PlanBytes(bool text) {
  size_t bytes = 0;
  for (PayloadStep* step : steps_) {
    if (step->upload().text() != text) continue;
    CROUT_ASSIGN_OR_RETURN(const size_t planned, step->Plan());
    bytes += planned;
  }
  return bytes;
}

// The steps of one call share a device, so that one reservation serves them all.
absl::Status UploadCall::AdmitSteps(bool text, Reservation reservation) {
  for (PayloadStep* step : steps_) {
    if (step->upload().text() != text) continue;
    CROUT_ASSIGN_OR_RETURN(const size_t planned, step->Plan());
    CROUT_RETURN_IF_ERROR(step->Admit(reservation.Split(planned)));
  }
  return absl::OkStatus();
}

void UploadCall::AdmitDense() {
  // Beyond this size a driver call or a system call may be needed for the memory.
  constexpr size_t kQuickBytes = size_t{8} << 20;
  const absl::StatusOr<size_t> bytes = PlanBytes(false);
  if (!bytes.ok()) return End(bytes.status());
  if (*bytes <= kQuickBytes) {
    if (auto reservation = steps_.front()->slot().budget->TryReserve(*bytes)) {
      const absl::Status status = AdmitSteps(false, *std::move(reservation));
      if (!status.ok()) return End(status);
      admitted_ = true;
      return;
    }
  }
  core_.blocking.Schedule([self = shared_from_this(), this, bytes = *bytes] {
    if (!BeginWork()) return;
    AdmitDenseSlowly(bytes);
    EndWork();
  });
}

void UploadCall::AdmitDenseSlowly(size_t bytes) {
  absl::Status status;
  auto reservation = core_.cache.ReserveOnDevice(steps_.front()->slot(), bytes);
  status = reservation.ok() ? AdmitSteps(false, *std::move(reservation)) : reservation.status();
  MutexLock lock(&mutex_);
  if (!status.ok()) return End(std::move(status));
  admitted_ = true;
  Pump();
}

void UploadCall::Complete() {
  in_flight_.reset();
  for (; step_ < steps_.size(); ++step_) {
    const absl::Status status = steps_[step_]->upload().Close();
    if (!status.ok()) return End(status);
  }
  if (!received_) received_ = Clock::now();
  const bool any_text = std::any_of(steps_.begin(), steps_.end(),
                                    [](PayloadStep* step) { return step->upload().text(); });
  for (PayloadStep* step : steps_) core_.metrics.ObserveUpload(step->upload().bytes_received());
  if (!any_text) return SubmitJob();
  core_.blocking.Schedule([self = shared_from_this(), this] {
    if (!BeginWork()) return;
    CompleteText();
    EndWork();
  });
}

void UploadCall::CompleteText() {
  absl::Status status = FinishText();
  MutexLock lock(&mutex_);
  if (!status.ok()) return End(std::move(status));
  SubmitJob();
}

absl::Status UploadCall::FinishText() {
  for (PayloadStep* step : steps_) {
    if (step->upload().text()) CROUT_RETURN_IF_ERROR(step->upload().Parse());
  }
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, PlanBytes(true));
  CROUT_ASSIGN_OR_RETURN(Reservation reservation,
                         core_.cache.ReserveOnDevice(steps_.front()->slot(), bytes));
  CROUT_RETURN_IF_ERROR(AdmitSteps(true, std::move(reservation)));
  for (PayloadStep* step : steps_) {
    if (stop_requested()) return absl::CancelledError("the client cancelled the call");
    if (step->upload().text())
      CROUT_RETURN_IF_ERROR(step->upload().Assemble([this] { return stop_requested(); }));
  }
  return absl::OkStatus();
}

void UploadCall::SubmitJob() {
  DeviceSlot& slot = steps_.front()->slot();
  const double predicted = PredictSeconds();
  Submit(*slot.scheduler, predicted);
  if (ended()) return;  // Refused: the steps may be gone.
  const size_t ahead = JobsAhead();
  if (IsLong() || ahead > 0)
    SendProgress(v1::PHASE_QUEUE, ahead, slot.scheduler->load().backlog_seconds);
}

void UploadCall::SendProgress(v1::Phase phase, size_t jobs_ahead, double predicted_seconds) {
  v1::Progress progress;
  progress.set_phase(phase);
  progress.set_jobs_ahead(static_cast<int32_t>(jobs_ahead));
  progress.set_predicted_seconds(predicted_seconds);
  Send([this, progress] { return Encode(progress); });
}

bool UploadCall::StopFactoring(ExecutionContext& context, int64_t n) {
  if (stop_requested()) return true;
  const int64_t done = context.report().ColumnsDone();
  if (done == 0) return false;
  MutexLock lock(&mutex_);
  // A client that reads slowly is spared, and told as soon as it has read.
  if (Clock::now() < next_telling_ || !IsLong() || !AllSent()) return false;
  next_telling_ = Clock::now() + kTellEvery;
  v1::Progress progress;
  progress.set_phase(v1::PHASE_FACTOR);
  progress.set_predicted_seconds(PredictSeconds());
  progress.set_columns_done(done);
  progress.set_columns(n);
  Send([this, progress] { return Encode(progress); });
  return false;
}

CallTimings UploadCall::ArrivalTimings() {
  MutexLock lock(&mutex_);
  CallTimings timings;
  timings.receive = std::chrono::duration<double>(*received_ - observed_.start).count();
  timings.queue = std::chrono::duration<double>(Clock::now() - *received_).count();
  return timings;
}

}  // namespace crout
