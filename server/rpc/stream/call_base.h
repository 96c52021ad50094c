// SPDX-License-Identifier: Apache-2.0

// Base of all calls: sends replies in order, ends the call once, handles cancellation, and accounts
// for the call when it ends.
#ifndef CROUT_SERVER_RPC_STREAM_CALL_BASE_H_
#define CROUT_SERVER_RPC_STREAM_CALL_BASE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/util/mutex.h"
#include "kernels/util/thread_pool.h"
#include "server/engine/batching/dynamic_batcher.h"
#include "server/engine/plan/cached_copy.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "server/engine/scheduling/job_scheduler.h"
#include "server/engine/scheduling/task_scheduler.h"
#include "server/replicas/call_replica.h"
#include "server/rpc/call_registry.h"
#include "server/rpc/caller.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/stream_message.h"
#include "server/rpc/core.h"
#include "server/rpc/stream/reply_writer.h"

namespace crout {

// Whether a call ends because of its deadline. The call began `seconds` ago and its client ends it
// now. The client's clock reaches the deadline before the server's: it started earlier by the
// network delay, and gRPC rounds up the timeout that it sends, by at most 1 %.
bool EndsByDeadline(const grpc::ServerContextBase& context, double seconds);

// The deadline on the scheduler's clock, or time_point::max() if the client set none.
Job::Clock::time_point DeadlineForJob(const grpc::ServerContextBase& context);

// The phases of a call.
//
// | phase      | work in this phase                               | entered by                    |
// | ---------- | ------------------------------------------------ | ----------------------------- |
// | kHeader    | the request arrives, is read and decoded         | gRPC, which opens the call    |
// | kAdmission | memory is reserved; the call may wait for        | the reaction to the request   |
// |            | another call with the same request_id            |                               |
// | kPayload   | the payload arrives                              | the thread that reserved the  |
// |            |                                                  | memory                        |
// | kQueue     | text is parsed and assembled; the job is queued  | the thread that received the  |
// |            |                                                  | last byte                     |
// | kWork      | the job runs                                     | a worker of the device        |
// | kReply     | the answer is known; no more work is needed;     | the work, the client or the   |
// |            | earlier messages are still sent                  | daemon, at any time           |
// | kEnd       | a thread releases the call's resources; gRPC may | the thread that ended the     |
// |            | still send the reply                             | last work or entered kReply   |
//
// A call only moves forward, and skips phases that it does not need, such as a payload or a job. A
// call in rounds is the exception: after an answer it returns to kHeader, and the payload of the
// next round may arrive completely before that answer has been sent. The phase does not show
// whether the client is still connected: see CallBase::OutlivesClient().
enum class CallPhase : uint8_t { kHeader, kAdmission, kPayload, kQueue, kWork, kReply, kEnd };
inline constexpr std::array<std::string_view, 7> kCallPhaseNames = {
    "header", "admission", "payload", "queue", "work", "reply", "end"};

// The object lives until gRPC is done with it and no job or task refers to it. Reactions, jobs and
// tasks run on different threads; `mutex_` serializes them. gRPC runs no reaction inside a Start*
// or Finish call, so these are called with the mutex held.
//
// A call ends once, by End(). It then accepts no further messages. If it ends with an error, it
// also drops the messages that gRPC has not taken, sets stop_requested() and withdraws a queued
// job. After any work in progress, ReleaseResources() runs on a thread that may block.
//
// By default, a call also ends when its client leaves. If OutlivesClient() is true, the work
// continues until it completes or End() is called.
//
// EnforceLimits() cancels a call whose client does not read its reply in time (ReplyWriter).
//
// call_base.cc implements the life of a call; call_job.cc implements its work and its queued job.
// The parts of a call are CallerCheck, ReplyWriter and JobTicket. StreamCall, GetFactorsCall and
// UnaryCall are also gRPC reactors and connect the two.
class CallBase : public LiveCall,
                 public PeerShares::Holder,
                 public std::enable_shared_from_this<CallBase> {
 public:
  using Message = ReplyWriter::Message;

  void Abort(absl::Status status) override;
  // Cancels a call whose client does not read its reply, because the reply holds memory. Ends a
  // call whose caller is no longer allowed to make it. Reports a job that is overdue.
  void EnforceLimits(Clock::time_point now) override;
  OpenCall Describe() override;
  // Has no effect while the call's job is queued or runs. The queue limits the number of such
  // calls, and their memory stays charged.
  void Preempt() override;

  ServerCore& core() const { return core_; }
  // Constant after Enter().
  const std::string& tenant() const { return tenant_; }
  // Returns QUOTA_EXCEEDED if the tenant may not cache another factor now.
  absl::Status CheckFactors() const { return core_.engine.cache.CheckFactors(account_); }
  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  ObservedCall& observed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return observed_; }

  // Records that the call holds resources of this device. The device's threads release them. If the
  // call fails because the device is lost, its status gives this reason.
  void ReleaseOn(DeviceSlot& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { slot_ = &slot; }
  // Charges the caller for a small message, as long as the returned charge lives.
  absl::StatusOr<PeerShares::Charge> Charge(size_t bytes);
  // Charges the caller as long as the call lives.
  absl::Status ChargeMore(size_t bytes);

  CallPhase phase() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return phase_; }
  // Enters the phase `next`. Has no effect if the call is in this phase or a later one.
  void MoveTo(CallPhase next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    phase_ = std::max(phase_, next);
  }
  // Begins the next round of a call that answers several requests: sets the phase to kHeader. Has
  // no effect once the call has ended.
  void BeginRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (phase_ < CallPhase::kReply) phase_ = CallPhase::kHeader;
  }
  // Starts the clock of a round. Call when the header of the round has arrived.
  void StartClock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { observed_.BeginStep(); }
  // Seconds since StartClock(), or since the beginning of a call without rounds.
  double RoundSeconds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return observed_.Seconds() - observed_.step_start;
  }
  // Whether the call still needs the work or its result.
  bool needs_result() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return phase_ < CallPhase::kReply;
  }
  // The time at which the client left, if the work continues without it.
  std::optional<Clock::time_point> client_left_at() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return client_left_at_;
  }
  bool stop_requested() const { return stop_.load(std::memory_order_relaxed); }

  // Whether gRPC has taken all messages.
  bool AllSent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return writer_.empty(); }

  void Send(Message message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Marks the start of the reply about a matrix of order `n`. ReplyTimings() measures the send time
  // from this moment.
  void StartReply(const CallTimings& timings, const Device& device, int64_t n)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the timings of the call at this moment, for a message that is about to be sent.
  CallTimings ReplyTimings() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Ends the call with `status`. If it is OK, messages that were passed to Send() are still sent.
  // An error drops them, and also replaces an OK end that is still being sent.
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Like End(), but messages that were passed to Send() are sent even if `status` is an error.
  void EndAfterReplies(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Sends `response`, and ends the call with `status`.
  template <class Response>
  void SendAndEnd(Response response, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Send([response = std::move(response)] { return Serialize(response); });
    EndAfterReplies(std::move(status));
  }
  // Sends `head` and `data`, in as many messages as `data` requires. `field` is the number of the
  // field that carries `data`. The first message starts with `head`; `tail(response)` completes the
  // last message. An empty buffer gives one message. The data is not copied.
  template <class Response, class Tail>
  void SendData(const Response& head, std::shared_ptr<const ReplyData> data, Tail tail,
                int field = Response::kDataFieldNumber) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    PushData(head, InFlight(std::move(data)), std::move(tail), field);
    SendNext();
  }
  // Like SendData(), and ends the call. The last message is sent together with the end, which
  // saves one write, one TLS record and one wake-up of the client.
  template <class Response, class Tail>
  void EndWithData(const Response& head, std::shared_ptr<const ReplyData> data, Tail tail,
                   int field = Response::kDataFieldNumber) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    PushData(head, InFlight(std::move(data)), std::move(tail), field);
    EndAfterReplies(absl::OkStatus());
  }
  // Ends the call with OK and sends `message` together with the end.
  void EndWith(Message message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Runs `work` on this thread unless the call has ended. If the standard library is out of memory,
  // only this call ends: the threads that run such work have no handler for std::bad_alloc.
  template <class Work>
  void DoWork(Work work) {
    if (!BeginWork()) return;
    RunOrEndOutOfMemory(work);
    EndWork();
  }

  using JobWork = std::function<void(ExecutionContext&)>;
  // Queues a job that runs `work` unless the call has ended by then. Ends the call if the job
  // cannot be queued.
  void Submit(DeviceScheduler& scheduler, double predicted_seconds, JobWork work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Queues a job that may run in one batch with jobs of other calls. Otherwise like the above.
  void Submit(DeviceScheduler& scheduler, double predicted_seconds, DynamicBatchWork work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Size of a task that reserves `bytes` bytes and may copy as many.
  static TaskSize AdmissionSize(size_t bytes) {
    constexpr double kBytesPerSecond = 10e9;
    return {.predicted_seconds = static_cast<double>(bytes) / kBytesPerSecond,
            .is_small = bytes <= kQuickAdmissionBytes};
  }
  static constexpr size_t kQuickAdmissionBytes = size_t{8} << 20;
  // Queues a task that runs `work` unless the call has ended by then. Ends the call if the task
  // cannot be queued.
  void SubmitTask(TaskScheduler& scheduler, TaskSize size, std::function<void()> work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t JobsAhead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ticket_.JobsAhead(); }

  // Pins the factor that the request names, by Acquire() or by AcquireToSolve().
  using AcquireFactor = decltype(&FactorCache::Acquire);
  absl::StatusOr<FactorCache::Pin> AcquireNamed(const std::string& handle,
                                                AcquireFactor acquire = &FactorCache::Acquire)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes `copy` on a thread that may block or, if the factor is on its device, by a job. Then
  // calls `reply` with the mutex held, unless the call has ended. `copy` lives until
  // ReleaseResources().
  void Fetch(CachedCopy& copy, std::function<void()> reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

 protected:
  CallBase(ServerCore& core, grpc::CallbackServerContext* context, Method method)
      : core_(core),
        context_(context),
        observed_(ObserveNewCall(method, context)),
        connection_entry_(core.connections.Begin(*context)),
        replica_(core.homes),
        writer_(core.limits.transfer) {}

  // Reactions of gRPC. The call may be destroyed in Done().
  void Cancelled();
  void WriteDone(bool ok);
  void Done();

  // Registers the call, authenticates its caller and charges the memory of the call. Must be called
  // once, right after construction. Pass an error to Refuse().
  absl::Status Enter();
  // Ends a call that Enter() refused. `request_bytes` is the number of bytes of its request that
  // gRPC holds. The end may be delayed (CallerCheck::Delay()).
  void Refuse(absl::Status status, size_t request_bytes = 0);

  // Frees the resources of the call on devices and budgets. Called once, after the end.
  virtual void ReleaseResources() = 0;
  // Whether the call needs ReleaseResources().
  virtual bool HoldsResources() const { return true; }
  // Completes the path of the field that `status` is about. By default, the request is the message.
  virtual absl::Status WithMessagePath(absl::Status status) const { return status; }
  // Whether the work continues after the client has left or its deadline has passed. Once true,
  // stays true.
  virtual bool OutlivesClient() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return false; }

  // Called after the write with which gRPC has taken all messages.
  virtual void OnAllSent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}
  // Call when the header, or the whole request, has been read.
  void HeaderRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { connection_entry_.HeaderRead(); }

  // Begins a call whose request is one message: registers the call, parses the request and charges
  // the caller for it, because gRPC holds the message as long as the call lives. Then runs `start`,
  // whose error ends the call.
  void BeginWithRequest(const grpc::ByteBuffer& buffer, google::protobuf::Message* request,
                        const std::function<absl::Status()>& start);

  ServerCore& core_;
  grpc::CallbackServerContext* const context_;
  // tenant_, priority_ and roles_ are constant after Enter().
  std::string tenant_;
  QueuePriority priority_ = QueuePriority::kNormal;
  Roles roles_;
  Mutex mutex_;
  ObservedCall observed_ ABSL_GUARDED_BY(mutex_);
  // Memory of the request for the data of the next reply; nullopt: the data are sent in messages.
  std::optional<SharedBytes> reply_memory_ ABSL_GUARDED_BY(mutex_);

 private:
  class CallJob;
  class CallTask;
  struct RunningJob {
    RunningJob(Clock::time_point start, double predicted_seconds)
        : start(start), predicted_seconds(predicted_seconds) {}

    const Clock::time_point start;
    const double predicted_seconds;
    std::optional<Metrics::OverdueJob> overdue;  // set when the job was reported
  };
  // Time that a client has to receive an error status before the call is cancelled.
  static constexpr Clock::duration kErrorStatusTimeout = std::chrono::seconds(1);

  // Call the reactor's StartWrite, StartWriteAndFinish and Finish. `message` must live until its
  // write has ended.
  virtual void StartWriting(const grpc::ByteBuffer& message) = 0;
  virtual void StartWritingLast(const grpc::ByteBuffer& message, grpc::Status status) = 0;
  virtual void StartFinishing(grpc::Status status) = 0;

  void Submit(DeviceScheduler& scheduler, double predicted_seconds, std::shared_ptr<Job> job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Every piece of work runs between BeginWork() and EndWork(). If BeginWork() returns false, the
  // call has ended: do not work for it, and do not call EndWork().
  bool BeginWork();
  bool BeginWorkLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndWork();
  void EndWorkLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Same for the call's job, which has left the queue.
  bool BeginJob(double predicted_seconds);
  void EndJob();
  void OnJobDequeued();
  void JobDequeued() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnTaskDequeued();
  template <class Work>
  void RunOrEndOutOfMemory(const Work& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      Abort(OutOfMemory());
    }
  }

  // Writes the data of a reply to the memory of the request, if that is large enough.
  bool WriteToSharedMemory(const Buffer& data) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Queues the messages of SendData(): one, if the data are written to shared memory. The messages
  // and gRPC share ownership of the data until gRPC has released the last slice.
  template <class Response, class Tail>
  void PushData(const Response& head, std::shared_ptr<const ReplyData> data, Tail tail, int field)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t size = data->bytes.size();
    if constexpr (requires(Response response) { response.set_shared_bytes(size); }) {
      if (field == Response::kDataFieldNumber && WriteToSharedMemory(data->bytes)) {
        writer_.Push([=, response = head]() mutable {
          response.set_shared_bytes(size);
          tail(response);
          return Serialize(response);
        });
        return;
      }
    }
    size_t offset = 0;
    do {
      const size_t count = std::min(core_.limits.ReplyChunkBytes(), size - offset);
      const bool last = offset + count == size;
      writer_.Push([=, response = offset == 0 ? head : Response()]() mutable {
        if (last) tail(response);
        if (count == 0) return Serialize(response);
        return SerializeWithData(response, field, {data->bytes.data() + offset, count}, data);
      });
      offset += count;
    } while (offset < size);
  }
  // Returns `reply` with a reference to the call's registry ticket. The call counts as in flight
  // until gRPC has released the reply, so that the daemon does not exit before.
  std::shared_ptr<const ReplyData> InFlight(std::shared_ptr<const ReplyData> reply) const;

  absl::Status ParseAndCharge(const grpc::ByteBuffer& buffer, google::protobuf::Message* request);
  // Returns the observations to report. The context of the call must not be used afterwards.
  ObservedCall Observed();
  // If `status` is a fault and the call's device is lost, adds this reason.
  absl::Status WithLostDevice(absl::Status status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets the status of the end. An error replaces an OK that is still being sent; the first error
  // is final.
  void Answer(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Status for gRPC. RESOURCE_EXHAUSTED without a message if there is no memory to build it.
  grpc::Status EndStatus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the call, or lets its work continue, after the client has left. Several reactions may
  // report this; only the first report has an effect.
  void ClientLeft(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Handles a report from gRPC that the client is gone. gRPC gives no reason: a passed deadline
  // ends the write in flight just as a broken connection does. `otherwise` is the message to use
  // unless the deadline has passed.
  void ClientGone(const char* otherwise) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a call whose refusal has been delayed long enough, and a call whose caller is no longer
  // allowed to make it.
  void CheckCaller(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Reports a job that has run far longer than predicted, once.
  void CheckJob(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Handles the end of a write and starts the next one.
  void ContinueSending(bool ok);
  // Passes the next message, or the end, to gRPC if it is due.
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountSent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Schedules ReleaseResources() once the call has ended and no work is in progress. Allocates
  // nothing, so that every call can release its resources when the system is out of memory.
  void ReleaseIfIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Destroyed last: the call stays in the registry until its other resources are released.
  std::shared_ptr<const CallRegistry::Ticket> entry_;
  TenantLoads::Account account_;
  std::string sharing_peer_;                 // the peer charged for the call
  std::vector<PeerShares::Charge> charges_;  // for the call and the messages it stores
  // Bytes of messages that the charge for the call still covers.
  size_t covered_bytes_ = ServerCore::kCallMessageBytes;
  std::shared_ptr<CallBase> self_;  // gRPC's reference, from Enter() to Done()
  std::atomic<bool> stop_ = false;

  ConnectionCalls::Entry connection_entry_ ABSL_GUARDED_BY(mutex_);
  CallerCheck caller_ ABSL_GUARDED_BY(mutex_);
  CallReplica replica_ ABSL_GUARDED_BY(mutex_);
  ReplyWriter writer_ ABSL_GUARDED_BY(mutex_);
  JobTicket ticket_ ABSL_GUARDED_BY(mutex_);
  std::optional<RunningJob> running_ ABSL_GUARDED_BY(mutex_);
  std::optional<ThreadPool::Node> release_ ABSL_GUARDED_BY(mutex_);  // from Enter() to the release
  double reply_start_ ABSL_GUARDED_BY(mutex_) = 0;      // seconds since the call's start
  DeviceSlot* slot_ ABSL_GUARDED_BY(mutex_) = nullptr;  // device whose resources the call holds
  CallPhase phase_ ABSL_GUARDED_BY(mutex_) = CallPhase::kHeader;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point end_time_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> client_left_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_CALL_BASE_H_
