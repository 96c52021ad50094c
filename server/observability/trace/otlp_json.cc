// SPDX-License-Identifier: Apache-2.0

#include "server/observability/trace/otlp_json.h"

#include <algorithm>
#include <utility>

#include "crout_version.h"
#include "nlohmann/json.hpp"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

// Values from opentelemetry.proto.trace.v1.
enum SpanKind : int { kInternalSpan = 1, kServerSpan = 2 };
enum SpanStatus : int { kUnset = 0, kError = 2 };

constexpr char kService[] = "crout.v1.FactorizationService";

Json Text(const char* key, std::string_view value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}
Json Number(const char* key, int64_t value) {
  return {{"key", key}, {"value", {{"intValue", std::to_string(value)}}}};
}
std::string Nanoseconds(absl::Time time) { return std::to_string(absl::ToUnixNanos(time)); }

// Returns kError for the codes that OpenTelemetry's gRPC conventions count as server errors. Other
// errors are caused by the client.
SpanStatus StatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return kError;
    default:
      return kUnset;
  }
}

Json AttributesOf(const EndedCall& call, std::string_view method) {
  Json attributes = {Text("rpc.system", "grpc"), Text("rpc.service", kService),
                     Text("rpc.method", method),
                     Number("rpc.grpc.status_code", static_cast<int64_t>(call.code)),
                     Number("crout.call", static_cast<int64_t>(call.id))};
  if (!call.tenant.empty()) attributes.push_back(Text("crout.tenant", call.tenant));
  if (!call.algorithm.empty()) attributes.push_back(Text("crout.algorithm", call.algorithm));
  if (!call.device.empty()) attributes.push_back(Text("crout.device", call.device));
  if (call.n >= 0) attributes.push_back(Number("crout.n", call.n));
  return attributes;
}

void AppendSpans(const TracedCall& traced, const std::function<std::string()>& make_span_id,
                 Json& spans) {
  const EndedCall& call = traced.call;
  const std::string_view method = kMethodNames[static_cast<size_t>(call.method)];
  const std::string id = make_span_id();
  const absl::Time begin = call.ended - absl::Seconds(call.seconds);
  spans.push_back({{"traceId", traced.context.trace_id},
                   {"spanId", id},
                   {"parentSpanId", traced.context.parent_id},
                   {"name", std::string(kService) + "/" + std::string(method)},
                   {"kind", kServerSpan},
                   {"startTimeUnixNano", Nanoseconds(begin)},
                   {"endTimeUnixNano", Nanoseconds(call.ended)},
                   {"attributes", AttributesOf(call, method)},
                   {"status", {{"code", StatusOf(call.code)}}}});
  absl::Time phase = begin;
  for (size_t i = 0; i < call.phases.size(); ++i) {
    if (!(call.phases[i] > 0)) continue;
    const absl::Time end = std::min(phase + absl::Seconds(call.phases[i]), call.ended);
    spans.push_back({{"traceId", traced.context.trace_id},
                     {"spanId", make_span_id()},
                     {"parentSpanId", id},
                     {"name", kJobPhaseNames[i]},
                     {"kind", kInternalSpan},
                     {"startTimeUnixNano", Nanoseconds(phase)},
                     {"endTimeUnixNano", Nanoseconds(end)}});
    phase = end;
  }
}

}  // namespace

std::string OtlpJson(std::span<const TracedCall> calls,
                     const std::function<std::string()>& make_span_id) {
  Json spans = Json::array();
  for (const TracedCall& call : calls) AppendSpans(call, make_span_id, spans);
  const Json resource = {
      {"attributes", {Text("service.name", "croutd"), Text("service.version", CROUT_VERSION)}}};
  const Json scope_spans = {{"scope", {{"name", "croutd"}}}, {"spans", std::move(spans)}};
  const Json request = {
      {"resourceSpans", {{{"resource", resource}, {"scopeSpans", {scope_spans}}}}}};
  // Replaces bytes from clients that are not UTF-8.
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace crout
