// SPDX-License-Identifier: Apache-2.0

// What is known of a call when it has ended, and the one place that reports it: metrics and log.
#ifndef CROUT_SERVER_RPC_OBSERVE_H_
#define CROUT_SERVER_RPC_OBSERVE_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "kernels/jobs/schur.h"
#include "server/engine/cache/factor_cache.h"
#include "server/observability/trace/trace_context.h"
#include "server/rpc/core.h"

namespace crout {

struct ObservedCall {
  // Numbers the call and tells the client its number, as the crout-call-id initial metadata.
  ObservedCall(Method method, grpc::ServerContextBase* context);

  // Seconds since the call began.
  double Seconds() const;
  // Seconds since the step that is under way began; without steps, since the call did. 0 between
  // steps: whoever waits then, it is not the client.
  double StepSeconds() const;
  // A step begins, and is the one that is under way.
  void BeginStep();

  // Names the factor that the call is about, for the log, by the first characters of its handle:
  // enough to find it in a list, too little to use it. No effect for what is no handle.
  void Concerns(std::string_view handle);

  const uint64_t id;
  const Method method;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  const std::string peer;
  const std::optional<TraceContext> trace;  // of its traceparent
  absl::Status status;
  std::string tenant;
  std::string identity;       // of the caller, empty where nobody is asked
  std::string request_id;     // the caller's, empty without one
  std::string handle_prefix;  // empty: the call concerned no factor
  std::string algorithm;      // the method or solver that ran
  std::string device;
  int64_t n = -1;               // -1: not known
  uint64_t received_bytes = 0;  // of messages; unary requests are not counted
  uint64_t sent_bytes = 0;
  uint64_t factor_bytes = 0;  // of the factor that was kept last, in the cache
  CallTimings timings;        // of a call with steps, those of the one under way
  // Of a call that is answered step by step, as a series is.
  int64_t steps = 0;      // answered and observed
  bool in_step = true;    // one is under way, or there are none
  double step_start = 0;  // seconds after `start`
};

// The seconds of each phase, in the order of JobPhase.
std::array<double, kJobPhaseNames.size()> PhasesOf(const CallTimings& timings);

// Counts a factor that a job made in so many seconds, and the iterations of its method, whose
// counts the factor still has: they are the last run's from now on.
void ObserveFactor(ServerCore& core, const DeviceSlot& slot, const FactorSummary& factor,
                   double seconds);

// Counts and logs a factor, or a Schur complement of a matrix of order `n`, that its reply warns
// of.
void ObserveQuality(ServerCore& core, const ObservedCall& call, const FactorSummary& factor);
void ObserveQuality(ServerCore& core, const ObservedCall& call, const FactorSummary& leading,
                    const SchurSummary& complement);

// What the step under way took, and its phases; whether it was slow. It ends so.
void ObserveStep(ServerCore& core, ObservedCall& call);

// Requests, duration, phases and rejections, those of answered steps aside; what CallLog and the
// audit say of it; whether it was slow; its spans, where its caller records the trace.
void ObserveCall(ServerCore& core, const ObservedCall& call);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_OBSERVE_H_
