// SPDX-License-Identifier: Apache-2.0

// The trace that a call belongs to, as its caller says (W3C Trace Context, level 1).
#ifndef CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_CONTEXT_H_
#define CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_CONTEXT_H_

#include <optional>
#include <string>
#include <string_view>

namespace crout {

struct TraceContext {
  std::string trace_id;   // 32 hexadecimal digits, lower case, not all 0
  std::string parent_id;  // of the caller's span: 16 of them, likewise
  bool sampled = false;   // whether the caller records this trace
};

// Reads the header `traceparent`, which comes from outside: nothing for what has not exactly the
// form of version 00, "00-TRACE_ID-PARENT_ID-FLAGS".
std::optional<TraceContext> ParseTraceparent(std::string_view header);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_CONTEXT_H_
