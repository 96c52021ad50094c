// SPDX-License-Identifier: Apache-2.0

// Encodes calls as trace spans in the JSON of the OpenTelemetry protocol.
#ifndef CROUT_SERVER_OBSERVABILITY_TRACE_OTLP_JSON_H_
#define CROUT_SERVER_OBSERVABILITY_TRACE_OTLP_JSON_H_

#include <functional>
#include <span>
#include <string>

#include "server/observability/status/recent_work.h"
#include "server/observability/trace/trace_context.h"

namespace crout {

// A finished call and its trace.
struct TracedCall {
  TraceContext context;
  EndedCall call;
};

// Returns an ExportTraceServiceRequest (OTLP 1.0, JSON encoding: hexadecimal identifiers, 64-bit
// numbers as strings). Each call is a SERVER span whose parent is the caller's span. It has an
// INTERNAL child span for each phase that took time.
//
// The start times of phases are not recorded. The phase spans are placed one after another from the
// start of the call, in the order of JobPhase, and end no later than the call. `make_span_id` must
// return 16 hexadecimal digits, different on each call.
std::string OtlpJson(std::span<const TracedCall> calls,
                     const std::function<std::string()>& make_span_id);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_TRACE_OTLP_JSON_H_
