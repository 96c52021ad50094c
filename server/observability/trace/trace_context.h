// SPDX-License-Identifier: Apache-2.0

// The trace that a call belongs to, from its metadata (W3C Trace Context, level 1).
#ifndef CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_CONTEXT_H_
#define CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_CONTEXT_H_

#include <optional>
#include <string>
#include <string_view>

namespace crout {

struct TraceContext {
  std::string trace_id;   // 32 hexadecimal digits in lower case, not all 0
  std::string parent_id;  // the caller's span: 16 digits of the same form
  bool sampled = false;   // the caller records this trace
};

// Parses the untrusted header `traceparent`. Returns nothing unless it has exactly the form of
// version 00, "00-TRACE_ID-PARENT_ID-FLAGS".
std::optional<TraceContext> ParseTraceparent(std::string_view header);

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_TRACE_TRACE_CONTEXT_H_
