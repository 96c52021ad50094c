// SPDX-License-Identifier: Apache-2.0

// What all calls share: replies in order, one end, cancellation, and the accounts at it.
#ifndef CROUT_SERVER_RPC_CALL_BASE_H_
#define CROUT_SERVER_RPC_CALL_BASE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/util/mutex.h"
#include "kernels/util/thread_pool.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "server/engine/scheduling/task_scheduler.h"
#include "server/rpc/call_gatherer.h"
#include "server/rpc/call_phase.h"
#include "server/rpc/call_registry.h"
#include "server/rpc/caller_check.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/core.h"
#include "server/rpc/data_stream.h"
#include "server/rpc/job_ticket.h"
#include "server/rpc/observe.h"
#include "server/rpc/reply_writer.h"

namespace crout {

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
//
// Its bodies: of a call's life call_base.cc, of its work and its job in the queue call_job.cc. Its
// parts: CallerCheck, ReplyWriter, JobTicket; gRPC's side is Call's (call.h).
class CallBase : public LiveCall,
                 public PeerShares::Holder,
                 public std::enable_shared_from_this<CallBase> {
 public:
  using Message = ReplyWriter::Message;

  void Abort(absl::Status status) override;
  // A client that does not read its reply holds the reply's memory.
  void EnforceLimits(Clock::time_point now) override;
  OpenCall Describe() override;
  // No effect on a call whose job waits or runs: those are bounded by the queue, and its memory
  // stays charged.
  void GiveWay() override;

 protected:
  CallBase(ServerCore& core, grpc::CallbackServerContext* context, Method method)
      : core_(core),
        context_(context),
        observed_(method, context),
        arrival_(core.connections.Begin(*context)),
        writer_(core.limits.transfer) {}

  // gRPC's reactions. After Done() the call may be gone.
  void Cancelled();
  void WriteDone(bool ok);
  void Done();

  // First step, right after construction: registers and charges the call and finds out whose it is.
  // An error goes to Refuse().
  absl::Status Enter();
  // Ends a call that could not begin; `held`: bytes of its request that gRPC keeps. May wait before
  // (CallerCheck::Delay()).
  void Refuse(absl::Status status, size_t held = 0);

  // Frees what the call holds on devices and budgets. Once, after the end.
  virtual void ReleaseResources() = 0;
  // From now on the call holds something of that device: its threads release it, and where the call
  // fails since the device is lost, the status says so.
  void ReleaseOn(DeviceSlot& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { slot_ = &slot; }
  // Whether the work is to go on now that the client is gone or its deadline has passed. Once true,
  // it stays so.
  virtual bool OutlivesClient() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return false; }

  // Parses a request that is one message. gRPC keeps it as long as the call lives: it is charged.
  absl::Status TakeRequest(const grpc::ByteBuffer& buffer, google::protobuf::Message* request);
  // Charges the caller for a small message that the call keeps.
  absl::StatusOr<PeerShares::Charge> Charge(size_t bytes);
  // Likewise, as long as the call lives.
  absl::Status ChargeMore(size_t bytes);

  // The header, or the whole request, has been read.
  void HeaderRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { arrival_.HeaderRead(); }

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

  void Send(Message message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Marks the start of the reply about a matrix of order n; ReplyTimings() then counts sending from
  // here.
  void StartReply(const CallTimings& timings, const Device& device, int64_t n)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The call's timings as of now, for a message that is about to be sent.
  CallTimings ReplyTimings() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Ends the call with `status`. After an OK status what was sent before still goes out; an error
  // drops it, and cuts short an end that is still sending.
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As End, but what was sent before goes out whatever the status.
  void EndAfterReplies(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

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
  void EndWith(Message message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

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
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Queues a job that may run together with those of other calls.
  void Submit(DeviceScheduler& scheduler, double predicted_seconds, GatheredWork work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What is known of a task before it runs.
  struct TaskSize {
    double predicted_seconds = 0;  // for the advice when to retry
    bool is_small = false;         // as Task::is_small
  };
  // Of a task that reserves so many bytes, and may copy as many.
  static TaskSize AdmissionSize(size_t bytes) {
    constexpr double kBytesPerSecond = 10e9;
    return {.predicted_seconds = static_cast<double>(bytes) / kBytesPerSecond,
            .is_small = bytes <= kQuickAdmissionBytes};
  }
  static constexpr size_t kQuickAdmissionBytes = size_t{8} << 20;
  // Queues a task: `work`, unless nobody wants it by then. An error has ended the call.
  void SubmitTask(TaskScheduler& scheduler, TaskSize size, std::function<void()> work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t JobsAhead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ticket_.JobsAhead(); }

  ServerCore& core_;
  grpc::CallbackServerContext* const context_;
  std::string tenant_;  // constant after Enter(), as the next one is
  Roles roles_;
  Mutex mutex_;
  ObservedCall observed_ ABSL_GUARDED_BY(mutex_);

 private:
  class CallJob;
  class CallTask;
  // How long a client that was told of an error may take to hear it.
  static constexpr Clock::duration kLeaveTime = std::chrono::seconds(1);

  // The reactor's StartWrite, StartWriteAndFinish and Finish. gRPC reads a message until its write
  // is over.
  virtual void StartWriting(const grpc::ByteBuffer& message) = 0;
  virtual void StartWritingLast(const grpc::ByteBuffer& message, grpc::Status status) = 0;
  virtual void StartFinishing(grpc::Status status) = 0;

  void Submit(DeviceScheduler& scheduler, double predicted_seconds, std::shared_ptr<Job> job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Between them somebody works for the call; false where nobody wants that.
  bool BeginWork();
  void EndWork();
  void LeaveQueue();
  void LeaveTaskQueue();
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
  std::shared_ptr<const ReplyData> InFlight(std::shared_ptr<const ReplyData> reply) const;

  // What is reported of the call; from now on its context is gone.
  ObservedCall Observed();
  // A fault of the device: when the device is lost, that is the reason.
  absl::Status NamingLostDevice(absl::Status status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the call ends with; an error goes before the OK that is still on its way.
  void Answer(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What gRPC is told; the bare code where there is no memory for more.
  grpc::Status EndStatus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // More than one reaction can tell it.
  void ClientLeft(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // gRPC says that the client is gone, and not why: a deadline ends the write in flight as a
  // connection that breaks does. `otherwise`: why, where it was not the deadline.
  void ClientGone(const char* otherwise) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a call that was refused a while ago, and one whose caller may no longer make it.
  void CheckCaller(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // A write has ended.
  void GoOnSending(bool ok);
  // Gives gRPC what it is to have next.
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountSent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Schedules ReleaseResources() once the call has ended and nothing works for it. Allocates
  // nothing: every call releases what it holds, however little memory the system has.
  void ReleaseIfIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // In the registry, until all else that the call holds has been given back.
  std::shared_ptr<const CallRegistry::Ticket> entry_;
  TenantLoads::Account account_;
  std::string sharing_peer_;                 // whom the call is charged to
  std::vector<PeerShares::Charge> charges_;  // for the call itself, and the messages it keeps
  std::shared_ptr<CallBase> self_;           // gRPC's reference, from Enter() to Done()
  std::atomic<bool> stop_ = false;

  ConnectionCalls::Entry arrival_ ABSL_GUARDED_BY(mutex_);
  CallerCheck caller_ ABSL_GUARDED_BY(mutex_);
  ReplyWriter writer_ ABSL_GUARDED_BY(mutex_);
  JobTicket ticket_ ABSL_GUARDED_BY(mutex_);
  std::optional<ThreadPool::Place> release_ ABSL_GUARDED_BY(mutex_);  // from Enter() to the release
  double reply_start_ ABSL_GUARDED_BY(mutex_) = 0;      // seconds since the call's start
  DeviceSlot* slot_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of which the call holds something
  CallPhase phase_ ABSL_GUARDED_BY(mutex_) = CallPhase::kHeader;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point end_time_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> left_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_BASE_H_
