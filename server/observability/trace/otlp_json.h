// SPDX-License-Identifier: Apache-2.0

// Calls as spans, in the JSON of the OpenTelemetry protocol.
#ifndef CROUT_SERVER_OBSERVABILITY_TRACE_OTLP_JSON_H_
#define CROUT_SERVER_OBSERVABILITY_TRACE_OTLP_JSON_H_

#include <functional>
#include <span>
#include <string>

#include "server/observability/status/recent_work.h"
#include "server/observability/trace/trace_context.h"

namespace crout {

// A call that ended, and the trace that it belongs to.
struct TracedCall {
  TraceContext context;
  EndedCall call;
};

// An ExportTraceServiceRequest (OTLP 1.0, JSON encoding: identifiers in hexadecimal, 64-bit numbers
// as strings). Each call is a span of kind SERVER below its caller's, with a span of kind INTERNAL
// for each phase that took time. When a phase began is not recorded: they are laid one behind the
// other from the call's begin, in the order in which they happen, and end with the call at the
// latest. `make_span_id` gives 16 hexadecimal digits, others at each call.
std::string OtlpJson(std::span<const TracedCall> calls,
                     const std::function<std::string()>& make_span_id);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_TRACE_OTLP_JSON_H_
