// SPDX-License-Identifier: Apache-2.0

// Checks that the caller may make a call, when the call begins and while it lasts.
#ifndef CROUT_SERVER_RPC_CALLER_CHECK_H_
#define CROUT_SERVER_RPC_CALLER_CHECK_H_

#include <chrono>
#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "server/rpc/caller.h"
#include "server/rpc/core.h"
#include "server/rpc/observe.h"

namespace crout {

// Not thread-safe.
class CallerCheck {
 public:
  using Clock = std::chrono::steady_clock;

  // Authenticates the new call `call`. Errors are those of AdmitCaller().
  absl::Status Admit(ServerCore& core, const grpc::CallbackServerContext& context,
                     const ObservedCall& call);
  const Caller& caller() const { return caller_; }

  // Delays the refusal of a call if `status` reports an unknown token, which slows down attempts to
  // guess one. Requires that refused_memory has room for the call and for `request_bytes` bytes of
  // its request. Returns true if the refusal is delayed; Check() then returns it after
  // kRefusalTime.
  bool Delay(ServerCore& core, const absl::Status& status, size_t request_bytes);

  // Returns the status with which the call must end at `now`: a refusal that has been delayed long
  // enough, or an error because the caller is no longer allowed to make the call. OK if the call
  // may continue.
  absl::Status Check(ServerCore& core, const ObservedCall& call, Clock::time_point now);

 private:
  Caller caller_;
  absl::Status refusal_;  // delayed refusal; OK if there is none
  Clock::time_point refused_at_;
  std::optional<Reservation> refused_memory_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALLER_CHECK_H_
