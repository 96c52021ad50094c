// What is known of a call when it has ended, and the one place that reports it: metrics and log.
#ifndef CROUT_SERVER_RPC_OBSERVE_H_
#define CROUT_SERVER_RPC_OBSERVE_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "server/cache/factor_cache.h"
#include "server/rpc/core.h"

namespace crout {

struct ObservedCall {
  // Numbers the call and tells the client its number, as the crout-call-id initial metadata.
  ObservedCall(Method method, grpc::ServerContextBase* context);

  // Seconds since the call began.
  double Seconds() const;

  const uint64_t id;
  const Method method;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  const std::string peer;
  std::string trace_parent;  // W3C traceparent, empty without one
  absl::Status status;
  std::string tenant;
  std::string request_id;  // the caller's, empty without one
  std::string device;
  int64_t n = -1;  // -1: not known
  CallTimings timings;
};

// Requests, duration, phases and rejections; one log line, without payload or handle.
void ObserveCall(ServerCore& core, const ObservedCall& call);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_OBSERVE_H_
