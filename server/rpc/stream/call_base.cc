// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/stream/call_base.h"

#include <algorithm>
#include <chrono>

#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/codec/stream_message.h"

namespace crout {
namespace {

using SystemTime = std::chrono::system_clock::time_point;

// A job is overdue if it takes longer than both.
constexpr double kOverdueSeconds = 60;
constexpr double kOverduePredictions = 20;

}  // namespace

bool EndsByDeadline(const grpc::ServerContextBase& context, double seconds) {
  const SystemTime deadline = context.deadline();
  if (deadline == SystemTime::max()) return false;
  constexpr double kNetworkSeconds = 0.05;
  constexpr double kRounding = 0.01;
  const std::chrono::duration<double> left = deadline - std::chrono::system_clock::now();
  return left.count() <= kNetworkSeconds + kRounding * (seconds + left.count());
}

Job::Clock::time_point DeadlineForJob(const grpc::ServerContextBase& context) {
  const SystemTime deadline = context.deadline();
  if (deadline == SystemTime::max()) return Job::Clock::time_point::max();
  const auto left = deadline - std::chrono::system_clock::now();
  constexpr auto kLong = std::chrono::hours(24 * 365);  // avoids overflow of the sum
  return SteadyNow() +
         std::chrono::duration_cast<Job::Clock::duration>(std::min<decltype(left)>(left, kLong));
}

void CallBase::Abort(absl::Status status) {
  MutexLock lock(&mutex_);
  End(std::move(status));
}

void CallBase::EnforceLimits(Clock::time_point now) {
  MutexLock lock(&mutex_);
  CheckCaller(now);
  CheckJob(now);
  if (!writer_.sending()) return;
  if (stop_requested()) {
    if (now - end_time_ < kErrorStatusTimeout) return;
  } else {
    if (writer_.Check(now) == TransferWatch::Fault::kNone) return;
    ClientLeft(absl::DeadlineExceededError("the client did not read its reply in time"));
  }
  context_->TryCancel();  // Aborts the write or the end in flight.
}

OpenCall CallBase::Describe() {
  OpenCall call;
  MutexLock lock(&mutex_);
  call.id = observed_.id;
  call.method = observed_.method;
  call.tenant = observed_.tenant;
  call.phase = kCallPhaseNames[static_cast<size_t>(phase_)];
  call.overdue = running_ && running_->overdue;
  if (slot_ != nullptr) call.device = slot_->device->info().name;
  call.received_bytes = observed_.received_bytes;
  call.seconds = observed_.Seconds();
  return call;
}

void CallBase::Preempt() {
  AbandonOnBadAlloc([this] {
    core_.releasing.Schedule(tenant_, [self = shared_from_this(), this] {
      MutexLock lock(&mutex_);
      if (phase_ == CallPhase::kQueue || phase_ == CallPhase::kWork) return;
      End(ServerCore::PreemptedStatus());
    });
  });
}

void CallBase::Cancelled() {
  MutexLock lock(&mutex_);
  ClientGone("the client cancelled the call");
}

void CallBase::WriteDone(bool ok) {
  try {
    ContinueSending(ok);
  } catch (const std::bad_alloc&) {
    Abort(OutOfMemory());
  }
}

void CallBase::Done() {
  const std::shared_ptr<CallBase> self = std::move(self_);
  {
    MutexLock lock(&mutex_);
    if (context_->IsCancelled()) connection_entry_.ClientLeft();
  }
  AbandonOnBadAlloc([this] { core_.observer.End(Observed()); });
}

ObservedCall CallBase::Observed() {
  MutexLock lock(&mutex_);
  writer_.Done();
  observed_.status = end_;
  return observed_;
}

absl::Status CallBase::Enter() {
  self_ = shared_from_this();
  CROUT_ASSIGN_OR_RETURN(CallRegistry::Ticket entry, core_.calls.Enter(self_));
  entry_ = std::make_shared<const CallRegistry::Ticket>(std::move(entry));
  MutexLock lock(&mutex_);
  CROUT_RETURN_IF_ERROR(caller_.Admit(core_, *context_, observed_));
  if (const auto replica = MetadataOf(*context_, CallReplica::kMetadata);
      replica && !replica_.Set(*replica)) {
    return BadMessageField(
        CallReplica::kMetadata,
        "metadata must be one value NAME.FOLDER, as the reply with the handle had it");
  }
  const Caller& caller = caller_.caller();
  tenant_ = observed_.tenant = caller.tenant;
  priority_ = caller.priority;
  roles_ = caller.roles;
  observed_.identity = caller.identity;
  sharing_peer_ =
      CallMemoryAccount(observed_.peer, UserOf(*context_), caller.identity, core_.trusted_proxies);
  CROUT_ASSIGN_OR_RETURN(charges_.emplace_back(), Charge(ServerCore::kCallBytes));
  connection_entry_.Charged();
  account_ = core_.engine.tenant_loads.OpenCall(tenant_);
  release_.emplace(tenant_);
  return absl::OkStatus();
}

void CallBase::Refuse(absl::Status status, size_t request_bytes) {
  MutexLock lock(&mutex_);
  if (caller_.Delay(core_, status, request_bytes)) return connection_entry_.Charged();
  End(std::move(status));
}

void CallBase::CheckCaller(Clock::time_point now) {
  if (!needs_result() && !writer_.sending()) return;
  absl::Status status = caller_.Check(core_, observed_, now);
  if (!status.ok()) End(std::move(status));
}

void CallBase::CheckJob(Clock::time_point now) {
  if (!running_ || running_->overdue) return;
  const double seconds = std::chrono::duration<double>(now - running_->start).count();
  const double predicted = running_->predicted_seconds;
  if (seconds <= std::max(kOverdueSeconds, kOverduePredictions * predicted)) return;
  running_->overdue.emplace(core_.metrics);
  const std::string_view device =
      slot_ == nullptr ? std::string_view() : slot_->device->info().name;
  core_.observer.OverdueJob(observed_, device, seconds, predicted);
}

absl::Status CallBase::ParseAndCharge(const grpc::ByteBuffer& buffer,
                                      google::protobuf::Message* request) {
  {
    MutexLock lock(&mutex_);
    if (!buffer.Valid()) {
      connection_entry_.ClientLeft();
      return absl::InvalidArgumentError("the call ended before its request: send one message");
    }
    HeaderRead();
  }
  CROUT_RETURN_IF_ERROR(ParseMessage(buffer, request));
  return ChargeMore(buffer.Length());
}

void CallBase::BeginWithRequest(const grpc::ByteBuffer& buffer, google::protobuf::Message* request,
                                const std::function<absl::Status()>& start) {
  DoWork([&] {
    absl::Status status = Enter();
    if (!status.ok()) return Refuse(std::move(status), buffer.Length());
    status = ParseAndCharge(buffer, request);
    if (status.ok()) status = start();
    if (!status.ok()) Abort(std::move(status));
  });
}

absl::StatusOr<PeerShares::Charge> CallBase::Charge(size_t bytes) {
  return core_.ChargeCall(sharing_peer_, bytes, weak_from_this());
}

absl::Status CallBase::ChargeMore(size_t bytes) {
  const size_t covered = std::min(bytes, covered_bytes_);
  covered_bytes_ -= covered;
  bytes -= covered;
  if (bytes == 0) return absl::OkStatus();
  CROUT_ASSIGN_OR_RETURN(charges_.emplace_back(), Charge(bytes));
  return absl::OkStatus();
}

void CallBase::StartReply(const CallTimings& timings, const Device& device, int64_t n) {
  observed_.device = device.info().name;
  observed_.n = n;
  observed_.timings = timings;
  reply_start_ = RoundSeconds();
}

CallTimings CallBase::ReplyTimings() {
  observed_.timings.total = RoundSeconds();
  observed_.timings.send = observed_.timings.total - reply_start_;
  return observed_.timings;
}

bool CallBase::WriteToSharedMemory(const Buffer& data) {
  if (!reply_memory_ || reply_memory_->bytes.size() < data.size()) return false;
  // The job may have written a solution there (PayloadStep::AllocateReply).
  std::byte* const to = reply_memory_->bytes.data();
  if (data.data() != to && !reply_memory_->region->Write({data.data(), data.size()}, to).ok()) {
    return false;  // The device of the memory is lost.
  }
  core_.metrics.shared_memory().CountSent(data.size());
  observed_.sent_bytes += data.size();
  return true;
}

std::shared_ptr<const ReplyData> CallBase::InFlight(std::shared_ptr<const ReplyData> reply) const {
  struct InFlightReply {
    std::shared_ptr<const CallRegistry::Ticket> entry;
    std::shared_ptr<const ReplyData> reply;
  };
  const auto owner = std::make_shared<const InFlightReply>(InFlightReply{entry_, std::move(reply)});
  return {owner, owner->reply.get()};
}

void CallBase::Send(Message message) {
  writer_.Push(std::move(message));
  SendNext();
}

void CallBase::ContinueSending(bool ok) {
  MutexLock lock(&mutex_);
  writer_.Written(SteadyNow());
  if (!ok) ClientGone("the client went away");
  SendNext();
  if (!AllSent()) return;
  (void)Failpoint("call.sent");
  OnAllSent();
}

void CallBase::SendNext() {
  switch (writer_.Next(SteadyNow())) {
    case ReplyWriter::Step::kNone:
      return;
    case ReplyWriter::Step::kWrite:
      CountSent();
      return StartWriting(writer_.message());
    case ReplyWriter::Step::kWriteLast:
      CountSent();
      return StartWritingLast(writer_.message(), EndStatus());
    case ReplyWriter::Step::kFinish:
      return StartFinishing(EndStatus());
  }
}

void CallBase::CountSent() {
  core_.metrics.CountSent(writer_.message().Length());
  observed_.sent_bytes += writer_.message().Length();
}

void CallBase::End(absl::Status status) {
  if (!status.ok()) {
    writer_.Drop();
    stop_.store(true, std::memory_order_relaxed);
    ticket_.Abandon(Clock::now());
  }
  EndAfterReplies(std::move(status));
}

void CallBase::EndAfterReplies(absl::Status status) {
  Answer(std::move(status));
  MoveTo(CallPhase::kReply);
  SendNext();
  ReleaseIfIdle();
}

void CallBase::EndWith(Message message) {
  writer_.Push(std::move(message));
  EndAfterReplies(absl::OkStatus());
}

void CallBase::ClientGone(const char* otherwise) {
  ClientLeft(EndsByDeadline(*context_, observed_.Seconds())
                 ? StatusOf(absl::StatusCode::kDeadlineExceeded, "the call's deadline passed")
                 : StatusOf(absl::StatusCode::kCancelled, otherwise));
}

void CallBase::ClientLeft(absl::Status status) {
  if (client_left_at_) return;
  if (writer_.closed() || !OutlivesClient()) return End(std::move(status));
  client_left_at_ = SteadyNow();
  writer_.Drop();
  Answer(std::move(status));
  SendNext();
}

absl::Status CallBase::WithLostDevice(absl::Status status) const {
  const bool fault = absl::IsUnavailable(status) || absl::IsInternal(status);
  if (!fault || ReasonOf(status) || slot_ == nullptr || slot_->device->healthy()) return status;
  return WithReason(std::move(status), kReasonDeviceLost);
}

void CallBase::Answer(absl::Status status) {
  if (writer_.closed() && !end_.ok()) return;
  end_ = replica_.Explain(WithMessagePath(WithLostDevice(std::move(status))));
  writer_.Close();
  end_time_ = SteadyNow();
}

grpc::Status CallBase::EndStatus() {
  try {
    const std::string replica = replica_.ReplyValue(core_.engine.cache, tenant_, observed_.handle);
    if (!replica.empty()) context_->AddTrailingMetadata(CallReplica::kMetadata, replica);
    return ToGrpcStatus(end_, context_);
  } catch (const std::bad_alloc&) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, ""};
  }
}

void CallBase::ReleaseIfIdle() {
  if (phase_ != CallPhase::kReply || ticket_.working()) return;
  ThreadPool& threads = slot_ == nullptr ? core_.releasing : *slot_->releasing;
  MoveTo(CallPhase::kEnd);
  if (!release_ || !HoldsResources()) return;  // A call that was not admitted holds nothing.
  threads.Schedule(*std::exchange(release_, std::nullopt),
                   [self = shared_from_this()] { self->ReleaseResources(); });
}

}  // namespace crout
