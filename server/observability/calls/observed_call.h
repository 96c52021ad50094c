// SPDX-License-Identifier: Apache-2.0

// The data of a call for the metrics, the log, the audit and the traces.
#ifndef CROUT_SERVER_OBSERVABILITY_CALLS_OBSERVED_CALL_H_
#define CROUT_SERVER_OBSERVABILITY_CALLS_OBSERVED_CALL_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/engine/cache/handle.h"
#include "server/engine/request.h"
#include "server/observability/metrics/labels.h"
#include "server/observability/trace/trace_exporter.h"

namespace crout {

struct ObservedCall {
  // Assigns the call's id. `peer` is gRPC's name of the peer.
  ObservedCall(Method method, std::string peer, std::optional<TraceContext> trace);

  // Seconds since the call began.
  double Seconds() const;
  // Seconds since the current step began, or since the call began if the call has no steps. 0
  // between steps, because the client is not waiting then.
  double StepSeconds() const;
  // Starts a step, which becomes the current step.
  void BeginStep();

  // Records the factor's handle, and its prefix for the log. The prefix is long enough to find the
  // factor in a list and too short to use as a handle. No effect if `text` is malformed.
  void SetHandle(std::string_view text);

  const uint64_t id;
  const Method method;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  const std::string peer;
  const std::optional<TraceContext> trace;
  absl::Status status;
  std::string tenant;
  std::string identity;          // the caller's; empty without authentication
  bool audited = false;          // an audit line is due if the caller has an identity
  std::string request_id;        // the caller's; empty if none was sent
  std::optional<Handle> handle;  // secret: gives access to the factor
  std::string handle_prefix;     // empty: the call concerned no factor
  std::string algorithm;         // the method or solver that ran
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

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_CALLS_OBSERVED_CALL_H_
