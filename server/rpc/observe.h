// SPDX-License-Identifier: Apache-2.0

// Collects the data of a call and reports it to the metrics, the log, the audit and the traces.
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
#include "kernels/echelon_reducer.h"
#include "kernels/jobs/schur.h"
#include "server/engine/cache/factor_cache.h"
#include "server/observability/trace/trace_exporter.h"
#include "server/rpc/core.h"

namespace crout {

struct ObservedCall {
  // Assigns the call's id and sends it to the client in the initial metadata "crout-call-id".
  ObservedCall(Method method, grpc::ServerContextBase* context);

  // Seconds since the call began.
  double Seconds() const;
  // Seconds since the current step began, or since the call began if the call has no steps. 0
  // between steps, because the client is not waiting then.
  double StepSeconds() const;
  // Starts a step, which becomes the current step.
  void BeginStep();

  // Records a prefix of the factor's handle for the log. The prefix is long enough to find the
  // factor in a list and too short to use as a handle. No effect if `handle` is malformed.
  void SetHandle(std::string_view handle);

  const uint64_t id;
  const Method method;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  const std::string peer;
  const std::optional<TraceContext> trace;  // from the "traceparent" metadata
  absl::Status status;
  std::string tenant;
  std::string identity;       // the caller's; empty without authentication
  std::string request_id;     // the caller's; empty if none was sent
  std::string handle_prefix;  // empty: the call concerned no factor
  std::string algorithm;      // the method or solver that ran
  std::string device;
  int64_t n = -1;               // matrix order; -1: unknown
  uint64_t received_bytes = 0;  // bytes of stream messages; unary requests are not counted
  uint64_t sent_bytes = 0;
  uint64_t factor_bytes = 0;  // size of the factor that the call cached last
  CallTimings timings;        // timings of the current step if the call has steps
  // For a call that is answered step by step, such as a series.
  int64_t steps = 0;      // steps that were answered and observed
  bool in_step = true;    // a step is running, or the call has no steps
  double step_start = 0;  // seconds after `start`
};

// Returns the seconds of each phase, in the order of JobPhase.
std::array<double, kJobPhaseNames.size()> PhasesOf(const CallTimings& timings);

// Count and log a factor or a Schur complement about which the reply warns. Have no effect on
// others.
void ObserveQuality(ServerCore& core, const ObservedCall& call, const FactorSummary& factor);
void ObserveComplement(ServerCore& core, const ObservedCall& call, const FactorSummary& leading,
                       const SchurSummary& complement);

// Logs an echelon form with a doubtful rank.
void LogPoorEchelonForm(ServerCore& core, const ObservedCall& call, const EchelonForm& form);

// Logs a job that has run for `seconds`, far longer than predicted, and runs on.
void LogOverdueJob(ServerCore& core, const ObservedCall& call, std::string_view device,
                   double seconds, double predicted_seconds);

// Ends the current step: reports its duration and phases, and logs it if it was slow.
void ObserveStep(ServerCore& core, ObservedCall& call);

// Reports a call that has ended. Counts the request and any rejection; reports the duration, phases
// and spans, except those of steps already observed; writes the call log and the audit. Spans are
// recorded only if the server collects traces and the caller samples this trace.
void ObserveCall(ServerCore& core, const ObservedCall& call);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_OBSERVE_H_
