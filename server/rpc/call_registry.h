// SPDX-License-Identifier: Apache-2.0

// Registry of the calls in flight, used to drain the server, to abort calls, and to enforce limits
// on clients that stop sending or reading.
#ifndef CROUT_SERVER_RPC_CALL_REGISTRY_H_
#define CROUT_SERVER_RPC_CALL_REGISTRY_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/util/mutex.h"
#include "server/observability/status/status_page.h"

namespace crout {

// Interface of a streaming call to the registry.
class LiveCall {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~LiveCall() = default;

  // Ends the call with `status` as soon as gRPC allows it. Has no effect once the call has ended.
  virtual void Abort(absl::Status status) = 0;

  // Ends the call if, at `now`, its client exceeds the limits or is gone.
  virtual void EnforceLimits(Clock::time_point now) = 0;

  // Describes the current state of the call.
  virtual OpenCall Describe() = 0;
};

// Thread-safe.
class CallRegistry {
 public:
  // Counts a call as in flight while the ticket lives. The job and the reply of the call are
  // included.
  class Ticket {
   public:
    Ticket() = default;
    ~Ticket();
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&& other) noexcept;

   private:
    friend class CallRegistry;
    Ticket(CallRegistry* registry, uint64_t id) : registry_(registry), id_(id) {}
    CallRegistry* registry_ = nullptr;
    uint64_t id_ = 0;
  };

  // Registers a call. Returns UNAVAILABLE (reason DRAINING) after Close(). `call` may be empty for
  // a unary call.
  absl::StatusOr<Ticket> Enter(std::weak_ptr<LiveCall> call);

  // Refuses new calls from now on.
  void Close();

  // Waits until no call is in flight. Returns false if `deadline` passed first or `interrupted`,
  // which is called every 50 ms, returned true.
  bool WaitUntilEmpty(LiveCall::Clock::time_point deadline,
                      const std::function<bool()>& interrupted);

  void AbortAll(const absl::Status& status);
  void EnforceLimits(LiveCall::Clock::time_point now);
  size_t in_flight() const;
  // Number of calls registered since the start.
  uint64_t entered() const;
  // Describes the `count` oldest streaming calls, or all if there are fewer, oldest first.
  std::vector<OpenCall> Oldest(size_t count) const;

 private:
  void Leave(uint64_t id);
  std::vector<std::shared_ptr<LiveCall>> Snapshot() const;

  mutable Mutex mutex_;
  CondVar empty_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::unordered_map<uint64_t, std::weak_ptr<LiveCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_REGISTRY_H_
