// What all calls share: replies in order, one end, cancellation, and the accounts at it.
#ifndef CROUT_SERVER_RPC_CALL_H_
#define CROUT_SERVER_RPC_CALL_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/mutex.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/call_gatherer.h"
#include "server/rpc/call_phase.h"
#include "server/rpc/call_registry.h"
#include "server/rpc/caller.h"
#include "server/rpc/core.h"
#include "server/rpc/data_stream.h"
#include "server/rpc/job_ticket.h"
#include "server/rpc/observe.h"
#include "server/rpc/reply_writer.h"
#include "server/rpc/status.h"
#include "server/rpc/wire.h"
#include "server/scheduling/device_scheduler.h"
#include "server/scheduling/reason.h"

namespace crout {

// Reactor is grpc::ServerBidiReactor or ServerWriteReactor over ByteBuffer, or UnaryReactor.
//
// Lives until gRPC is done with it and no job or task refers to it. Reactions, jobs and tasks run
// on different threads; `mutex_` orders them. gRPC runs no reaction inside a Start* or Finish call
// (they are not inlined), so those are made with the mutex held.
//
// Ends once, by End(): from then on nothing is sent, stop_requested() is true, a queued job is
// taken back, and ReleaseResources() runs on a thread that may block, after the work in progress if
// any. Only where OutlivesClient() says so does the work go on when the client has left, until it
// ends by itself or another End() comes.
//
// A client that does not read its reply in time (ReplyWriter) is cut off.
template <class Reactor>
class Call : public Reactor, public LiveCall, public std::enable_shared_from_this<Call<Reactor>> {
 public:
  using Message = ReplyWriter::Message;

  void Abort(absl::Status status) override {
    MutexLock lock(&mutex_);
    End(std::move(status));
  }

  // A client that does not read its reply holds the reply's memory.
  void EnforceLimits(Clock::time_point now) override {
    MutexLock lock(&mutex_);
    ReleaseIfIdle();
    CheckCaller(now);
    if (!writer_.sending()) return;
    if (stop_requested()) {
      if (now - end_time_ < kLeaveTime) return;
    } else {
      if (writer_.Check(now) == TransferWatch::Fault::kNone) return;
      ClientLeft(absl::DeadlineExceededError("the client did not read its reply in time"));
    }
    context_->TryCancel();  // Ends the write or the end that gRPC still has.
  }

  OpenCall Describe() override {
    OpenCall call;
    MutexLock lock(&mutex_);
    call.id = observed_.id;
    call.method = observed_.method;
    call.tenant = observed_.tenant;
    call.phase = kCallPhaseNames[static_cast<size_t>(phase_)];
    if (slot_ != nullptr) call.device = slot_->device->info().name;
    call.received_bytes = observed_.received_bytes;
    call.seconds = observed_.Seconds();
    return call;
  }

  void OnCancel() override {
    MutexLock lock(&mutex_);
    ClientGone("the client cancelled the call");
  }

  void OnWriteDone(bool ok) override {
    try {
      GoOnSending(ok);
    } catch (const std::bad_alloc&) {
      Abort(OutOfMemory());
    }
  }

  void OnDone() override {
    const std::shared_ptr<Call> self = std::move(self_);
    GoOnWithoutMemory([this] { ObserveCall(core_, Done()); });
  }

 protected:
  Call(ServerCore& core, grpc::CallbackServerContext* context, Method method)
      : core_(core), context_(context), observed_(method, context), writer_(core.limits.transfer) {}

  // First step, right after construction: registers and charges the call and finds out whose it is.
  // An error goes to Refuse().
  absl::Status Enter() {
    self_ = this->shared_from_this();
    CROUT_ASSIGN_OR_RETURN(CallRegistry::Ticket entry, core_.calls.Enter(self_));
    entry_ = std::make_shared<const CallRegistry::Ticket>(std::move(entry));
    CROUT_ASSIGN_OR_RETURN(charge_, core_.ChargeCall());
    MutexLock lock(&mutex_);
    CROUT_ASSIGN_OR_RETURN(caller_, AdmitCaller(core_, *context_, observed_));
    tenant_ = observed_.tenant = caller_.tenant;
    roles_ = caller_.roles;
    account_ = core_.tenant_loads.OpenCall(tenant_);
    observed_.identity = caller_.identity;
    return absl::OkStatus();
  }
  // Ends a call that could not begin; `held`: bytes of its request that gRPC keeps. One that came
  // with an unknown token hears so only after kRefusalTime, if there is memory for its waiting:
  // trying tokens is slow.
  void Refuse(absl::Status status, size_t held = 0) {
    MutexLock lock(&mutex_);
    if (ReasonOf(status) == kReasonUnknownToken) {
      refused_memory_ = core_.refused_memory.TryReserve(ServerCore::kCallBytes + held);
      if (refused_memory_) {
        refusal_ = std::move(status);
        refused_at_ = SteadyNow();
        return;
      }
    }
    End(std::move(status));
  }

  // Frees what the call holds on devices and budgets. Once, after the end.
  virtual void ReleaseResources() = 0;
  // From now on the call holds something of that device: its threads release it, and where the call
  // fails since the device is lost, the status says so.
  void ReleaseOn(DeviceSlot& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { slot_ = &slot; }
  // Whether the work is to go on now that the client is gone or its deadline has passed. Once true,
  // it stays so.
  virtual bool OutlivesClient() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return false; }

  // Parses a request that is one message. gRPC keeps it as long as the call lives: it is charged.
  absl::Status TakeRequest(const grpc::ByteBuffer& buffer, google::protobuf::Message* request) {
    CROUT_RETURN_IF_ERROR(ParseMessage(buffer, request));
    return ChargeMore(buffer.Length());
  }
  // Charges the call, as long as it lives, for a small message that it keeps.
  absl::Status ChargeMore(size_t bytes) {
    CROUT_ASSIGN_OR_RETURN(Reservation more, core_.ChargeCall(bytes));
    charge_.Absorb(std::move(more));
    return absl::OkStatus();
  }

  CallPhase phase() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return phase_; }
  // The next phase begins; no effect on a call that is there or beyond, as one that has ended is.
  void MoveTo(CallPhase next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    phase_ = std::max(phase_, next);
  }
  // What was asked is answered, and the client may ask again: from the header on.
  void BeginRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (phase_ < CallPhase::kReply) phase_ = CallPhase::kHeader;
  }
  // The round's header is here: its time begins.
  void StartClock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { observed_.BeginStep(); }
  // Seconds since StartClock(); without rounds, since the call began.
  double RoundSeconds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return observed_.Seconds() - observed_.step_start;
  }
  // Whether the work, or what came of it, is of use to anybody.
  bool wanted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return phase_ < CallPhase::kReply; }
  // When the client left a call whose work goes on.
  std::optional<Clock::time_point> left() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return left_;
  }
  bool stop_requested() const { return stop_.load(std::memory_order_relaxed); }

  // Whether gRPC has taken all that was sent. OnAllSent() comes when it has, while the call lasts.
  bool AllSent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return writer_.empty(); }
  virtual void OnAllSent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}

  void Send(Message message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    writer_.Push(std::move(message));
    SendNext();
  }

  // Marks the start of the reply about a matrix of order n; ReplyTimings() then counts sending from
  // here.
  void StartReply(const CallTimings& timings, const Device& device, int64_t n)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    observed_.device = device.info().name;
    observed_.n = n;
    observed_.timings = timings;
    reply_start_ = RoundSeconds();
  }
  // The call's timings as of now, for a message that is about to be sent.
  CallTimings ReplyTimings() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    observed_.timings.total = RoundSeconds();
    observed_.timings.send = observed_.timings.total - reply_start_;
    return observed_.timings;
  }

  // Ends the call with `status`. After an OK status what was sent before still goes out; an error
  // drops it, and cuts short an end that is still sending.
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!status.ok()) {
      writer_.Drop();
      stop_.store(true, std::memory_order_relaxed);
      ticket_.Abandon(Clock::now());
    }
    EndAfterReplies(std::move(status));
  }
  // As End, but what was sent before goes out whatever the status.
  void EndAfterReplies(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Answer(std::move(status));
    MoveTo(CallPhase::kReply);
    SendNext();
    ReleaseIfIdle();
  }

  // Answers with `head`, `data` in as many messages as it takes, as their field of that number, and
  // what `tail(response)` adds to the last of them.
  template <class Response, class Tail>
  void SendData(const Response& head, std::shared_ptr<const ReplyData> data, Tail tail,
                int field = Response::kDataFieldNumber) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    StreamData(head, InFlight(std::move(data)), field, core_.limits.ReplyChunkBytes(),
               std::move(tail), [this](Message message) {
                 mutex_.AssertHeld();
                 Send(std::move(message));
               });
  }

  // As SendData(), and ends the call: the last of the messages leaves together with the end, which
  // is one write, one record of TLS and one wake-up of the client less.
  template <class Response, class Tail>
  void EndWithData(const Response& head, std::shared_ptr<const ReplyData> data, Tail tail,
                   int field = Response::kDataFieldNumber) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    StreamData(head, InFlight(std::move(data)), field, core_.limits.ReplyChunkBytes(),
               std::move(tail), [this](Message message) {
                 mutex_.AssertHeld();
                 writer_.Push(std::move(message));
               });
    EndAfterReplies(absl::OkStatus());
  }

  // Ends the call with its last message, which leaves together with the end.
  void EndWith(Message message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    writer_.Push(std::move(message));
    EndAfterReplies(absl::OkStatus());
  }

  // Runs `work`, unless nobody wants it, on a thread of its own, where nothing above could catch:
  // memory that the standard library does not get ends this call alone.
  template <class Work>
  void DoWork(Work work) {
    if (!BeginWork()) return;
    EndingOutOfMemory(work);
    EndWork();
  }

  using JobWork = std::function<void(ExecutionContext&)>;
  // Queues a job: `work`, unless nobody wants it by then. An error has ended the call.
  void Submit(DeviceScheduler& scheduler, double predicted_seconds, JobWork work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!wanted()) return;
    Submit(scheduler, predicted_seconds,
           std::make_shared<CallJob>(this->shared_from_this(), std::move(work)));
  }
  // Queues a job that may run together with those of other calls.
  void Submit(DeviceScheduler& scheduler, double predicted_seconds, GatheredWork work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!wanted()) return;
    auto job = std::make_shared<CallJob>(this->shared_from_this(), std::move(work));
    job->gatherer = &core_.gatherer;
    job->group = job->gathered().group();
    job->tenant = tenant_;
    Submit(scheduler, predicted_seconds, std::move(job));
  }
  size_t JobsAhead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ticket_.JobsAhead(); }

  ServerCore& core_;
  grpc::CallbackServerContext* const context_;
  std::string tenant_;  // constant after Enter(), as the next one is
  Roles roles_;
  Mutex mutex_;
  ObservedCall observed_ ABSL_GUARDED_BY(mutex_);

 private:
  // How long a client that was told of an error may take to hear it.
  static constexpr Clock::duration kLeaveTime = std::chrono::seconds(1);

  // Keeps the call alive while it is queued or runs.
  class CallJob final : public CallJobBase {
   public:
    CallJob(std::shared_ptr<Call> call, JobWork work)
        : call_(std::move(call)), work_(std::move(work)) {}
    CallJob(std::shared_ptr<Call> call, GatheredWork work)
        : call_(std::move(call)), gathered_(std::move(work)) {}

    void Run(ExecutionContext& context) override {
      if (!Begin()) return;
      call_->EndingOutOfMemory([&] { work_(context); });
      End();
    }
    void Drop(absl::Status status) override {
      call_->LeaveQueue();
      call_->Abort(std::move(status));
    }

    bool Begin() override {
      call_->LeaveQueue();  // first, or a call that ended meanwhile would keep itself alive
      return call_->BeginWork();
    }
    bool Prepare(ExecutionContext& context, GatheredSystem& system) override {
      absl::Status status;
      call_->EndingOutOfMemory([&] { status = gathered_.prepare(context, system); });
      if (!status.ok()) call_->Abort(std::move(status));
      return !call_->stop_requested();
    }
    void Finish(ExecutionContext& context, GatheredSystem& system,
                const GatheredTimings& timings) override {
      call_->EndingOutOfMemory([&] { gathered_.finish(context, system, timings); });
    }
    void End() override { call_->EndWork(); }
    bool stop_requested() const override { return call_->stop_requested(); }
    const GatheredWork& gathered() const override { return gathered_; }

   private:
    const std::shared_ptr<Call> call_;
    const JobWork work_;
    const GatheredWork gathered_;
  };

  void Submit(DeviceScheduler& scheduler, double predicted_seconds, std::shared_ptr<Job> job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    MoveTo(CallPhase::kQueue);
    if (!OutlivesClient()) job->deadline = SteadyDeadline();
    job->predicted_seconds = predicted_seconds;
    // If it runs already, LeaveQueue() waits for the mutex.
    absl::Status status = ticket_.Submit(scheduler, std::move(job));
    if (!status.ok()) End(std::move(status));
  }

  // Between them somebody works for the call; false where nobody wants that.
  bool BeginWork() {
    MutexLock lock(&mutex_);
    if (!wanted()) return false;
    ticket_.BeginWork();
    return true;
  }
  void EndWork() {
    MutexLock lock(&mutex_);
    core_.metrics.CountWasted(ticket_.EndWork(Clock::now()));
    ReleaseIfIdle();
  }
  template <class Work>
  void EndingOutOfMemory(const Work& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      Abort(OutOfMemory());
    }
  }

  // `reply` for messages: the call counts as in flight until gRPC has let go of it, so that the
  // daemon does not end before.
  std::shared_ptr<const ReplyData> InFlight(std::shared_ptr<const ReplyData> reply) const {
    struct Held {
      std::shared_ptr<const CallRegistry::Ticket> entry;
      std::shared_ptr<const ReplyData> reply;
    };
    const auto held = std::make_shared<const Held>(Held{entry_, std::move(reply)});
    return {held, held->reply.get()};
  }

  // gRPC is done with the call: from now on its context is gone.
  ObservedCall Done() {
    MutexLock lock(&mutex_);
    writer_.Done();
    observed_.status = end_;
    return observed_;
  }

  // A fault of the device: when the device is lost, that is the reason.
  absl::Status NamingLostDevice(absl::Status status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool fault = absl::IsUnavailable(status) || absl::IsInternal(status);
    if (!fault || ReasonOf(status) || slot_ == nullptr || slot_->device->healthy()) return status;
    return WithReason(std::move(status), kReasonDeviceLost);
  }

  // What the call ends with; an error goes before the OK that is still on its way.
  void Answer(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writer_.closed() && !end_.ok()) return;
    end_ = NamingLostDevice(std::move(status));
    writer_.Close();
    end_time_ = SteadyNow();
  }

  // What gRPC is told; the bare code where there is no memory for more.
  grpc::Status EndStatus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    try {
      return ToGrpcStatus(end_, context_);
    } catch (const std::bad_alloc&) {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, ""};
    }
  }

  // More than one reaction can tell it.
  void ClientLeft(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (left_) return;
    if (writer_.closed() || !OutlivesClient()) return End(std::move(status));
    left_ = SteadyNow();
    writer_.Drop();
    Answer(std::move(status));
    SendNext();
  }

  // gRPC says that the client is gone, and not why: a deadline ends the write in flight as a
  // connection that breaks does. `otherwise`: why, where it was not the deadline.
  void ClientGone(const char* otherwise) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ClientLeft(IsAboutDeadline()
                   ? StatusOf(absl::StatusCode::kDeadlineExceeded, "the call's deadline passed")
                   : StatusOf(absl::StatusCode::kCancelled, otherwise));
  }

  // Ends a call that was refused a while ago, and one whose caller may no longer make it.
  void CheckCaller(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!wanted() && !writer_.sending()) return;
    if (!refusal_.ok()) {
      if (now - refused_at_ >= kRefusalTime) End(refusal_);
      return;
    }
    absl::Status status = ReadmitCaller(core_, observed_, caller_);
    if (!status.ok()) End(std::move(status));
  }

  void LeaveQueue() {
    MutexLock lock(&mutex_);
    ticket_.Redeem();
    MoveTo(CallPhase::kWork);
  }

  // Whether a call that the client ends now ends by its deadline. The client's clock runs out
  // first: it began a journey earlier, and gRPC rounds up the time that it tells, by 1 % at most.
  bool IsAboutDeadline() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto deadline = context_->deadline();
    if (deadline == std::chrono::system_clock::time_point::max()) return false;
    constexpr double kJourneySeconds = 0.05;
    constexpr double kRounding = 0.01;
    const std::chrono::duration<double> left = deadline - std::chrono::system_clock::now();
    return left.count() <= kJourneySeconds + kRounding * (observed_.Seconds() + left.count());
  }

  Job::Clock::time_point SteadyDeadline() const {
    const auto deadline = context_->deadline();
    if (deadline == std::chrono::system_clock::time_point::max()) {
      return Job::Clock::time_point::max();
    }
    const auto left = deadline - std::chrono::system_clock::now();
    constexpr auto kLong = std::chrono::hours(24 * 365);  // beyond it the sum could overflow
    return SteadyNow() +
           std::chrono::duration_cast<Job::Clock::duration>(std::min<decltype(left)>(left, kLong));
  }

  // A write has ended.
  void GoOnSending(bool ok) {
    MutexLock lock(&mutex_);
    writer_.Written(SteadyNow());
    if (!ok) ClientGone("the client went away");
    SendNext();
    if (!AllSent()) return;
    (void)Failpoint("call.sent");
    OnAllSent();
  }

  // Gives gRPC what it is to have next.
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    switch (writer_.Next(SteadyNow())) {
      case ReplyWriter::Step::kNone:
        return;
      case ReplyWriter::Step::kWrite:
        CountSent();
        return this->StartWrite(&writer_.message());
      case ReplyWriter::Step::kWriteLast:
        CountSent();
        return this->StartWriteAndFinish(&writer_.message(), grpc::WriteOptions(), EndStatus());
      case ReplyWriter::Step::kFinish:
        return this->Finish(EndStatus());
    }
  }
  void CountSent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    core_.metrics.CountSent(writer_.message().Length());
    observed_.sent_bytes += writer_.message().Length();
  }

  void ReleaseIfIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (phase_ != CallPhase::kReply || ticket_.working()) return;
    ThreadPool& threads = slot_ == nullptr ? core_.releasing : *slot_->releasing;
    GoOnWithoutMemory([&] {
      threads.Schedule([self = this->shared_from_this()] { self->ReleaseResources(); });
      mutex_.AssertHeld();
      MoveTo(CallPhase::kEnd);  // not without memory: EnforceLimits() comes back to it
    });
  }

  // In the registry, until all else that the call holds has been given back.
  std::shared_ptr<const CallRegistry::Ticket> entry_;
  TenantLoads::Account account_;
  Reservation charge_;          // of what the call costs beside its job, as long as it lives
  std::shared_ptr<Call> self_;  // gRPC's reference, from Enter() to OnDone()
  std::atomic<bool> stop_ = false;

  Caller caller_ ABSL_GUARDED_BY(mutex_);
  // What a refused caller hears later, since when it waits, and what that takes; OK for others.
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point refused_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<Reservation> refused_memory_ ABSL_GUARDED_BY(mutex_);

  ReplyWriter writer_ ABSL_GUARDED_BY(mutex_);
  JobTicket ticket_ ABSL_GUARDED_BY(mutex_);
  double reply_start_ ABSL_GUARDED_BY(mutex_) = 0;      // seconds since the call's start
  DeviceSlot* slot_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of which the call holds something
  CallPhase phase_ ABSL_GUARDED_BY(mutex_) = CallPhase::kHeader;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point end_time_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> left_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_H_
