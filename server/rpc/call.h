// What the streaming calls share: replies in order, one end, cancellation, and the accounts at it.
#ifndef CROUT_SERVER_RPC_CALL_H_
#define CROUT_SERVER_RPC_CALL_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/util/mutex.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/call_registry.h"
#include "server/rpc/codec.h"
#include "server/rpc/core.h"
#include "server/rpc/observe.h"
#include "server/rpc/status.h"
#include "server/scheduling/device_scheduler.h"
#include "server/scheduling/reason.h"

namespace crout {

// A streaming call; Reactor is grpc::ServerBidiReactor or ServerWriteReactor over ByteBuffer.
//
// Lives until gRPC is done with it and no job or task refers to it. Reactions, jobs and tasks run
// on different threads; `mutex_` orders them. gRPC runs no reaction inside a Start* or Finish call
// (they are not inlined), so those are made with the mutex held.
//
// Ends once, by End(): from then on nothing is sent, stop_requested() is true, a queued job is
// taken back, and ReleaseResources() runs on a thread that may block, after the work in progress if
// any.
template <class Reactor>
class Call : public Reactor, public LiveCall, public std::enable_shared_from_this<Call<Reactor>> {
 public:
  // A reply, made when its turn comes: so that the last one can tell how long sending took.
  using Message = std::function<grpc::ByteBuffer()>;

  void Abort(absl::Status status) override {
    MutexLock lock(&mutex_);
    End(std::move(status));
  }

  // A client that does not read its reply holds the reply's memory.
  void AbortIfIdle(Clock::time_point idle_since) override {
    MutexLock lock(&mutex_);
    if (!write_in_flight_ || write_start_ > idle_since) return;
    End(absl::DeadlineExceededError("the client stopped reading its reply"));
    context_->TryCancel();  // ends the write, which the end waits for
  }

  void OnCancel() override {
    const bool late = std::chrono::system_clock::now() >= context_->deadline();
    Abort(late ? absl::DeadlineExceededError("the call's deadline passed")
               : absl::CancelledError("the client cancelled the call"));
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    write_in_flight_ = false;
    if (!ok) End(absl::CancelledError("the client went away"));
    SendNext();
  }

  void OnDone() override {
    ObserveCall(core_, Observed());
    self_.reset();
  }

 protected:
  Call(ServerCore& core, grpc::CallbackServerContext* context, Method method)
      : core_(core), context_(context), observed_(method, context) {}

  // First step, right after construction: registers the call and reads its tenant.
  absl::Status Enter() {
    self_ = this->shared_from_this();
    CROUT_ASSIGN_OR_RETURN(ticket_, core_.calls.Enter(self_));
    CROUT_ASSIGN_OR_RETURN(tenant_, DecodeTenant(*context_));
    MutexLock lock(&mutex_);
    observed_.tenant = tenant_;
    return absl::OkStatus();
  }

  // Frees what the call holds on devices and budgets. Once, after the end.
  virtual void ReleaseResources() = 0;
  // Runs the job's work; between BeginWork and EndWork.
  virtual void RunJob(ExecutionContext& context) = 0;

  // The status of a job that failed on `device`: when the device is lost, that is the reason.
  static absl::Status JobStatus(absl::Status status, const Device& device) {
    if (device.healthy()) return status;
    return WithReason(std::move(status), kReasonDeviceLost);
  }

  bool ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; }
  bool stop_requested() const { return stop_.load(std::memory_order_relaxed); }

  // Whether gRPC has taken all that was sent.
  bool AllSent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return replies_.empty() && !write_in_flight_;
  }

  void Send(Message message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_) return;
    replies_.push_back(std::move(message));
    SendNext();
  }

  // Marks the start of the reply; ReplyTimings() then counts sending from here.
  void StartReply(const CallTimings& timings) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    observed_.timings = timings;
    reply_start_ = observed_.Seconds();
  }
  // The call's timings as of now, for a message that is about to be sent.
  CallTimings ReplyTimings() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    observed_.timings.total = observed_.Seconds();
    observed_.timings.send = observed_.timings.total - reply_start_;
    return observed_.timings;
  }

  // Ends the call with `status`. After an OK status what was sent before still goes out; an error
  // drops it, and cuts short an end that is still sending.
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_ && status.ok()) return;
    if (!status.ok()) {
      replies_.clear();
      stop_.store(true, std::memory_order_relaxed);
      if (job_ != nullptr && scheduler_->Remove(job_.get())) job_.reset();
    }
    EndAfterReplies(std::move(status));
  }
  // As End, but what was sent before goes out whatever the status.
  void EndAfterReplies(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!ended_ || end_.ok()) end_ = std::move(status);
    ended_ = true;
    SendNext();
    ReleaseIfIdle();
  }

  // Brackets work outside reactions. BeginWork is false when the call has ended: then do nothing.
  bool BeginWork() {
    MutexLock lock(&mutex_);
    if (ended_) return false;
    ++working_;
    return true;
  }
  void EndWork() {
    MutexLock lock(&mutex_);
    --working_;
    ReleaseIfIdle();
  }

  // Queues the job. An error has ended the call.
  void Submit(DeviceScheduler& scheduler, double predicted_seconds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_) return;
    auto job = std::make_shared<CallJob>(this->shared_from_this());
    job->deadline = SteadyDeadline();
    job->predicted_seconds = predicted_seconds;
    scheduler_ = &scheduler;
    job_ = job;
    const absl::Status status = scheduler.Submit(std::move(job));
    if (!status.ok()) {
      job_.reset();
      End(status);
    }
  }
  size_t JobsAhead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return job_ == nullptr ? 0 : scheduler_->JobsAhead(job_.get());
  }

  ServerCore& core_;
  grpc::CallbackServerContext* const context_;
  std::string tenant_;  // constant after Enter()
  Mutex mutex_;
  ObservedCall observed_ ABSL_GUARDED_BY(mutex_);

 private:
  // Keeps the call alive while it is queued or runs.
  class CallJob final : public Job {
   public:
    explicit CallJob(std::shared_ptr<Call> call) : call_(std::move(call)) {}
    void Run(ExecutionContext& context) override {
      call_->ForgetJob();  // first, or a call that ended meanwhile would keep itself alive
      if (!call_->BeginWork()) return;
      call_->RunJob(context);
      call_->EndWork();
    }
    void Drop(absl::Status status) override {
      call_->ForgetJob();
      call_->Abort(std::move(status));
    }

   private:
    const std::shared_ptr<Call> call_;
  };

  ObservedCall Observed() {
    MutexLock lock(&mutex_);
    return observed_;
  }

  // The job refers to the call: breaking the cycle as soon as the job left the queue.
  void ForgetJob() {
    MutexLock lock(&mutex_);
    job_.reset();
  }

  Job::Clock::time_point SteadyDeadline() const {
    const auto deadline = context_->deadline();
    if (deadline == std::chrono::system_clock::time_point::max()) {
      return Job::Clock::time_point::max();
    }
    const auto left = deadline - std::chrono::system_clock::now();
    constexpr auto kLong = std::chrono::hours(24 * 365);  // beyond it the sum could overflow
    return Job::Clock::now() +
           std::chrono::duration_cast<Job::Clock::duration>(std::min<decltype(left)>(left, kLong));
  }

  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (write_in_flight_ || finished_) return;
    if (replies_.empty()) {
      if (ended_) Finish();
      return;
    }
    message_ = replies_.front()();
    replies_.pop_front();
    core_.metrics.CountSent(message_.Length());
    if (replies_.empty() && ended_) {
      observed_.status = end_;
      finished_ = true;
      this->StartWriteAndFinish(&message_, grpc::WriteOptions(), ToGrpcStatus(end_, context_));
      return;
    }
    write_in_flight_ = true;
    write_start_ = Clock::now();
    this->StartWrite(&message_);
  }

  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    observed_.status = end_;
    Reactor::Finish(ToGrpcStatus(end_, context_));
  }

  void ReleaseIfIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!ended_ || working_ > 0 || released_) return;
    released_ = true;
    core_.releasing.Schedule([self = this->shared_from_this()] { self->ReleaseResources(); });
  }

  std::shared_ptr<Call> self_;  // gRPC's reference, from Enter() to OnDone()
  CallRegistry::Ticket ticket_;
  std::atomic<bool> stop_ = false;

  std::deque<Message> replies_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer message_;  // gRPC's while a write is in flight
  Clock::time_point write_start_ ABSL_GUARDED_BY(mutex_);
  double reply_start_ ABSL_GUARDED_BY(mutex_) = 0;  // seconds since the call's start
  bool write_in_flight_ ABSL_GUARDED_BY(mutex_) = false;
  int working_ ABSL_GUARDED_BY(mutex_) = 0;  // a job can start before the task that queued it ends
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Job> job_ ABSL_GUARDED_BY(mutex_);
  DeviceScheduler* scheduler_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_H_
