// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/stream/stream_call.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/sparse/analysis.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/stream/stream_handler.h"

namespace crout {
namespace {

absl::Status TooManyBytes() {
  return BadMessageField(
      "data",
      "more bytes than the step's header declares: send rows x cols elements of each matrix");
}

}  // namespace

StreamCall::StreamCall(ServerCore& core, grpc::CallbackServerContext* context, Method method,
                       MakeHandler make)
    : CallBase(core, context, method),
      handler_(make(*this)),
      reader_(core.limits.transfer, [this](std::string_view id) {
        return core_.shared_regions.Find(id, UserOf(*context_));
      }) {}

StreamCall::~StreamCall() = default;

void StreamCall::Begin() {
  DoWork([this] {
    absl::Status status = Enter();
    if (!status.ok()) return Refuse(std::move(status));
    MutexLock lock(&mutex_);
    reader_.StartWatch(SteadyNow());
    ReadAhead();
    reader_.UpdateTurn(SteadyNow());
  });
}

// The request is the field `header` of the first message.
absl::Status StreamCall::WithMessagePath(absl::Status status) const {
  return WithFieldPrefix(std::move(status), "header.");
}

bool StreamCall::OutlivesClient() const {
  handler_->AssertHeld();
  return handler_->OutlivesClient();
}

double StreamCall::PredictSeconds() {
  handler_->AssertHeld();
  return handler_->PredictSeconds();
}

void StreamCall::OnReadDone(bool ok) {
  try {
    HandleRead(ok);
  } catch (const std::bad_alloc&) {
    Abort(OutOfMemory());
  }
}

void StreamCall::HandleRead(bool ok) {
  MutexLock lock(&mutex_);
  const grpc::ByteBuffer buffer = reader_.EndRead();
  if (!needs_result()) return;
  if (!ok && context_->IsCancelled()) return;  // the stream broke; OnCancel() ends the call
  absl::Status status;
  if (ok) {
    // Read the next message while this one is copied. The copy holds the mutex, so the reaction to
    // the next message waits for at most one copy, and the messages stay in order.
    if (phase() == CallPhase::kPayload) ReadAhead();
    status = HandleMessage(buffer);
  } else {
    reader_.HalfClose();
    if (BetweenRounds()) return End(absl::OkStatus());
    if (phase() == CallPhase::kHeader)
      status = BadMessageField("header", "the stream ended before its first message");
  }
  if (!status.ok()) return End(std::move(status));
  Pump();
}

void StreamCall::ReadAhead() {
  if (grpc::ByteBuffer* buffer = reader_.StartRead()) StartRead(buffer);
}

absl::Status StreamCall::HandleMessage(const grpc::ByteBuffer& buffer) {
  core_.metrics.CountReceived(buffer.Length());
  observed_.received_bytes += buffer.Length();
  CROUT_ASSIGN_OR_RETURN(StreamMessage * message, reader_.Add(buffer, SteadyNow()));
  core_.metrics.shared_memory().CountReceived(message->shared_bytes());
  observed_.received_bytes += message->shared_bytes();
  if (phase() == CallPhase::kHeader) return HandleHeader(*message);
  if (message->has_header() && !handler_->InRounds()) {
    return BadMessageField("header", "repeated: only the first message carries one");
  }
  return absl::OkStatus();
}

absl::Status StreamCall::HandleHeader(StreamMessage& message) {
  if (!message.has_header()) {
    if (!BetweenRounds()) {
      return BadMessageField("header", "missing: the first message carries the header");
    }
    // Ignore an empty message, as within a payload.
    if (reader_.NextMessage() != nullptr) return TooManyBytes();
    ReadAhead();
    return absl::OkStatus();
  }
  if (BetweenRounds()) StartClock();
  MoveTo(CallPhase::kAdmission);
  HeaderRead();
  reader_.MarkHeaderRead();
  reader_.StopWatch();
  reply_memory_ = message.shared_reply();
  first_ = &message;
  handler_->AssertHeld();
  CROUT_ASSIGN_OR_RETURN(std::vector<PayloadStep*> steps, handler_->Start(message));
  if (steps.empty()) return absl::OkStatus();
  if (reply_memory_) steps.back()->SetReplyMemory(*reply_memory_);
  Proceed(std::move(steps));
  return absl::OkStatus();
}

bool StreamCall::RoundIsFull() const {
  return handler_->InRounds() && step_ + 1 == steps_.size() && steps_.back().upload().full();
}

void StreamCall::EndRound() {
  ++rounds_;
  steps_ = {};
  step_ = 0;
  received_.reset();
  expected_.reset();
  BeginRound();
}

void StreamCall::NextRound(absl::Duration timeout) {
  if (!needs_result()) return;
  reader_.StartWatch(
      SteadyNow(), {.idle_timeout = timeout, .min_rate = 0, .max_time = absl::InfiniteDuration()});
  if (StreamMessage* next = reader_.NextMessage()) {
    const absl::Status status = reader_.AtHeader() ? HandleHeader(*next) : TooManyBytes();
    if (!status.ok()) return End(status);
  } else if (reader_.half_closed()) {
    return End(absl::OkStatus());
  } else {
    ReadAhead();
  }
  Pump();
}

void StreamCall::Proceed(std::vector<PayloadStep*> steps) {
  steps_ = StepGroup(std::move(steps), tenant());
  in_flight_.emplace(core_.metrics);
  DeviceSlot& slot = steps_.slot();
  ReleaseOn(slot);
  const absl::StatusOr<MemoryNeed> need = steps_.PlanDense();
  absl::Status status = need.status();
  if (status.ok()) status = steps_.CheckOrders(core_.engine.quotas);
  if (status.ok()) status = core_.engine.quotas.CheckSeconds(tenant_);
  // Last, because a retry does not help against the errors of the request itself.
  if (status.ok()) status = steps_.CheckRoom();
  if (!status.ok()) return End(std::move(status));
  expected_.emplace(slot.expected, PredictSeconds(), need->device);
  // A gRPC reaction must not wait for the driver or the system to allocate memory.
  if (need->device <= kQuickAdmissionBytes && steps_.HasCachedMemory()) {
    if (auto memory = TryReserve(core_.engine, slot, *need, steps_.tenant())) {
      const absl::Status status = steps_.AdmitDense(*std::move(memory));
      return status.ok() ? BeginUpload() : End(status);
    }
  }
  SubmitTask(*slot.admitting, AdmissionSize(need->device + need->host),
             [this, need = *need] { AdmitDenseInTask(need); });
}

absl::StatusOr<PeerShares::Charge> StreamCall::StoreFirstMessage() {
  constexpr double kRetrySeconds = 1;
  if (first_->size() > kMaxRequestBytes) {
    return WithRetryAfter(
        WithReason(absl::AbortedError(absl::StrCat(
                       "another call with this request_id is in progress. To wait for it, the "
                       "first message must have at most ",
                       kMaxRequestBytes >> 10, " KiB: send the payload in later messages")),
                   kReasonRequestInProgress),
        kRetrySeconds);
  }
  CROUT_ASSIGN_OR_RETURN(PeerShares::Charge charge, Charge(first_->size()));
  first_->Detach();
  return charge;
}

void StreamCall::AdmitDenseInTask(const MemoryNeed& need) {
  auto memory = Reserve(core_.engine, steps_.slot(), need, steps_.tenant());
  const absl::Status status = memory.ok() ? steps_.AdmitDense(*std::move(memory)) : memory.status();
  MutexLock lock(&mutex_);
  if (!status.ok()) return End(status);
  BeginUpload();
  Pump();
}

void StreamCall::BeginUpload() {
  MoveTo(CallPhase::kPayload);
  expected_->Reserved();
  reader_.StartWatch(SteadyNow());
}

void StreamCall::Complete() {
  in_flight_.reset();
  reader_.StopWatch();
  if (!AllSent()) return;  // OnAllSent() continues, or the call ends if the client does not read
  MoveTo(CallPhase::kQueue);
  for (; step_ < steps_.size(); ++step_) {
    const absl::Status status = steps_[step_].upload().Close();
    if (!status.ok()) return End(status);
  }
  if (!received_) received_ = Clock::now();
  for (PayloadStep* step : steps_) core_.metrics.ObserveUpload(step->upload().bytes_received());
  if (!steps_.any_parsed()) return SubmitJob();
  SubmitTask(*steps_.slot().preparing, steps_.PreparationSize(), [this] { CompleteParsed(); });
}

void StreamCall::CompleteParsed() {
  const absl::StatusOr<bool> job = FinishParsed();
  MutexLock lock(&mutex_);
  if (!job.ok()) return End(job.status());
  if (*job) SubmitJob();
}

absl::StatusOr<bool> StreamCall::FinishParsed() {
  const auto stop = [this] { return stop_requested(); };
  const PayloadStep* analyzed = nullptr;
  int reported_steps = -1;
  CROUT_RETURN_IF_ERROR(steps_.Analyze(core_.engine, stop, [&](PayloadStep& step) {
    if (std::exchange(analyzed, &step) != &step) reported_steps = -1;
    return StopAnalyzing(step.upload(), reported_steps);
  }));
  CROUT_ASSIGN_OR_RETURN(const bool answered, handler_->AnswerSingular());
  if (answered) return false;
  CROUT_RETURN_IF_ERROR(steps_.Assemble(core_.engine, stop));
  return true;
}

void StreamCall::SubmitJob() {
  DeviceSlot& slot = steps_.slot();
  const double predicted = PredictSeconds();
  handler_->AssertHeld();
  if (std::optional<DynamicBatchWork> work = handler_->MakeBatchWork()) {
    work->slot = &slot;
    Submit(*slot.scheduler, predicted, *std::move(work));
  } else {
    Submit(*slot.scheduler, predicted,
           [this](ExecutionContext& context) { handler_->RunJob(context); });
  }
  expected_.reset();
  if (!needs_result()) return;  // refused; the steps may be destroyed
  const double backlog = slot.scheduler->load().backlog_seconds;
  if (!IsLong() && backlog <= kLongSeconds) return;
  v1::Progress progress;
  progress.set_phase(v1::PHASE_QUEUE);
  progress.set_jobs_ahead(static_cast<int32_t>(JobsAhead()));
  progress.set_predicted_seconds(backlog);
  SendProgress(std::move(progress));
}

void StreamCall::ReleaseResources() {
  {
    MutexLock lock(&mutex_);
    expected_.reset();
  }
  handler_->ReleaseResources();
}

void StreamCall::SendProgress(v1::Progress progress) {
  Send([this, progress = std::move(progress)] { return handler_->EncodeProgress(progress); });
}

bool StreamCall::StopFactoring(ExecutionContext& context, int64_t n) {
  if (stop_requested()) return true;
  const int64_t done = context.report().ColumnsDone();
  if (done == 0) return false;
  MutexLock lock(&mutex_);
  if (absl::Status stalled = CheckStalled(done, n); !stalled.ok()) {
    core_.metrics.CountStalledJob();
    End(std::move(stalled));
    return true;
  }
  // Skip the report until the client has read the earlier messages.
  if (SteadyNow() < next_report_ || !IsLong() || !AllSent()) return false;
  next_report_ = SteadyNow() + kReportInterval;
  v1::Progress progress;
  progress.set_phase(v1::PHASE_FACTOR);
  progress.set_predicted_seconds(PredictSeconds());
  progress.set_columns_done(done);
  progress.set_columns(n);
  SendProgress(std::move(progress));
  return false;
}

absl::Status StreamCall::CheckStalled(int64_t done, int64_t n) {
  const auto now = SteadyNow();
  if (std::exchange(columns_, done) != done) columns_since_ = now;
  const absl::Duration limit = core_.limits.stalled_job_timeout;
  // The phases after the last column report nothing.
  if (done >= n || absl::FromChrono(now - columns_since_) <= limit) return absl::OkStatus();
  return WithReason(
      absl::InternalError(absl::StrCat("the factorization stood still after column ", done, " of ",
                                       n, " for longer than ", absl::FormatDuration(limit),
                                       " (--stalled-job-timeout) and was ended. Check the device, "
                                       "then factor the matrix again")),
      kReasonJobStalled);
}

bool StreamCall::StopAnalyzing(const MatrixUpload& upload, int& reported_steps) {
  if (stop_requested()) return true;
  const std::optional<MatrixUpload::AnalysisProgress>& analysis = upload.analysis();
  // No cost model predicts the time of an analysis. Report only after it has run for kLong.
  constexpr std::chrono::duration<double> kLong(kLongSeconds);
  if (!analysis || analysis->steps == reported_steps || SteadyNow() - analysis->since < kLong)
    return false;
  MutexLock lock(&mutex_);
  if (!AllSent()) return false;
  reported_steps = analysis->steps;
  v1::Progress progress;
  progress.set_phase(v1::PHASE_ANALYZE);
  progress.set_steps_done(reported_steps);
  progress.set_steps(kAnalysisSteps);
  SendProgress(std::move(progress));
  return false;
}

CallTimings StreamCall::UploadTimings() {
  MutexLock lock(&mutex_);
  CallTimings timings;
  timings.queue = std::chrono::duration<double>(Clock::now() - *received_).count();
  timings.receive = RoundSeconds() - timings.queue;
  return timings;
}

CallTimings StreamCall::StartJob(v1::Phase phase) {
  const CallTimings timings = UploadTimings();
  MutexLock lock(&mutex_);
  columns_ = 0;
  if (!IsLong()) return timings;
  v1::Progress progress;
  progress.set_phase(phase);
  progress.set_predicted_seconds(PredictSeconds());
  SendProgress(std::move(progress));
  return timings;
}

void StreamCall::StartReply(const CallTimings& timings) {
  PayloadStep& first = steps_.front();
  CallBase::StartReply(timings, *first.slot().device, first.order());
}

}  // namespace crout
