// SPDX-License-Identifier: Apache-2.0

// The calls in flight: for drain, for forced ends, and for clients that stopped sending or reading.
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
#include "server/observability/status/status_view.h"

namespace crout {

// A streaming call as the registry sees it.
class LiveCall {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~LiveCall() = default;

  // Ends the call with `status` as soon as gRPC allows; no effect once it has ended.
  virtual void Abort(absl::Status status) = 0;

  // Ends the call if its client does not keep within the limits, or is gone, as of `now`.
  virtual void EnforceLimits(Clock::time_point now) = 0;

  // What it is doing at the moment.
  virtual OpenCall Describe() = 0;
};

// Thread-safe.
class CallRegistry {
 public:
  // Counts a call as in flight while it lives, its job and its reply included.
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

  // UNAVAILABLE (reason DRAINING) once Close() was called. `call` may be empty for a unary call.
  absl::StatusOr<Ticket> Enter(std::weak_ptr<LiveCall> call);

  // Refuses calls from now on.
  void Close();

  // Waits until no call is in flight; false if `deadline` came first or `interrupted` (asked every
  // 50 ms) returned true.
  bool WaitUntilEmpty(LiveCall::Clock::time_point deadline,
                      const std::function<bool()>& interrupted);

  void AbortAll(const absl::Status& status);
  void EnforceLimits(LiveCall::Clock::time_point now);
  size_t in_flight() const;
  // Calls that entered since the start.
  uint64_t entered() const;
  // At most `count` of the streaming calls, in the order in which they came.
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
