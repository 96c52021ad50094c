// SPDX-License-Identifier: Apache-2.0

// Whether who makes a call may make it: when it begins, and for as long as it lasts.
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

  // Finds out whose call `call`, which begins, is. Errors as AdmitCaller().
  absl::Status Admit(ServerCore& core, const grpc::CallbackServerContext& context,
                     const ObservedCall& call);
  const Caller& caller() const { return caller_; }

  // The call could not begin. One that came with an unknown token hears so only after kRefusalTime,
  // if there is memory for its waiting, beside `held` bytes of its request: trying tokens is slow.
  // Whether it waits: then Check() says when it has.
  bool Delay(ServerCore& core, const absl::Status& status, size_t held);

  // What the call is to end with as of `now`: a refusal that has waited for long enough, or that
  // the caller may make it no longer. OK for one that goes on.
  absl::Status Check(ServerCore& core, const ObservedCall& call, Clock::time_point now);

 private:
  Caller caller_;
  absl::Status refusal_;  // that waits; OK for others
  Clock::time_point refused_at_;
  std::optional<Reservation> refused_memory_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALLER_CHECK_H_
