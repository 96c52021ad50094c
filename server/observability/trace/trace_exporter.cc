// SPDX-License-Identifier: Apache-2.0

#include "server/observability/trace/trace_exporter.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <random>
#include <utility>

#include "crout_version.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/thread.h"
#include "nlohmann/json.hpp"
#include "server/observability/log/log.h"

namespace crout {
namespace {

constexpr size_t kTraceDigits = 32;
constexpr size_t kParentDigits = 16;
constexpr size_t kTrace = 3;  // after "00-"
constexpr size_t kParent = kTrace + kTraceDigits + 1;
constexpr size_t kFlags = kParent + kParentDigits + 1;
constexpr size_t kLength = kFlags + 2;

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool IsId(std::string_view text) {
  return IsHex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

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

// Returns 16 hexadecimal digits, not all 0. The digits must be unique; they need not be secret.
std::string MakeSpanId() {
  thread_local std::mt19937_64 random(std::random_device{}());
  const uint64_t id = std::max<uint64_t>(random(), 1);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, id);
  return digits;
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(std::string_view header) {
  if (header.size() != kLength || !header.starts_with("00-") || header[kParent - 1] != '-' ||
      header[kFlags - 1] != '-') {
    return std::nullopt;
  }
  const std::string_view trace = header.substr(kTrace, kTraceDigits);
  const std::string_view parent = header.substr(kParent, kParentDigits);
  const std::string_view flags = header.substr(kFlags);
  if (!IsId(trace) || !IsId(parent) || !IsHex(flags)) return std::nullopt;
  // The flag "sampled" is the lowest bit.
  constexpr std::string_view kOdd = "13579bdf";
  return TraceContext{std::string(trace), std::string(parent),
                      kOdd.find(flags.back()) != std::string_view::npos};
}

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

absl::StatusOr<std::unique_ptr<TraceExporter>> TraceExporter::Create(
    const std::string& endpoint, const TraceExporterOptions& options) {
  CROUT_ASSIGN_OR_RETURN(HttpUrl url, ParseHttpUrl(endpoint));
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  url.path += "/v1/traces";
  return std::unique_ptr<TraceExporter>(new TraceExporter(std::move(url), options));
}

TraceExporter::TraceExporter(HttpUrl url, const TraceExporterOptions& options)
    : options_(options),
      poster_(std::move(url)),
      next_retry_(options.retry),
      thread_(StartThread([this] { Work(); })) {}

TraceExporter::~TraceExporter() {
  const Clock::time_point end = SteadyNow() + options_.shutdown_timeout;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
    while (!done_ && SteadyNow() < end) wake_.WaitUntil(&mutex_, end);
  }
  poster_.Stop();
  thread_.join();
}

void TraceExporter::Add(TracedCall call) {
  MutexLock lock(&mutex_);
  if (waiting_.size() >= options_.capacity) return Drop(TraceDrop::kQueueFull, 1);
  if (waiting_.empty()) first_added_ = SteadyNow();
  waiting_.push_back(std::move(call));
  if (waiting_.size() == 1 || waiting_.size() == options_.batch) wake_.SignalAll();
}

std::vector<TracedCall> TraceExporter::Next() {
  MutexLock lock(&mutex_);
  while (!stopping_ && waiting_.empty()) wake_.Wait(&mutex_);
  const Clock::time_point due = first_added_ + options_.delay;
  while (!stopping_ && waiting_.size() < options_.batch && SteadyNow() < due) {
    wake_.WaitUntil(&mutex_, due);
  }
  const size_t count = std::min(waiting_.size(), options_.batch);
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<TracedCall> calls(std::make_move_iterator(waiting_.begin()),
                                std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return calls;
}

void TraceExporter::Work() {
  for (;;) {
    const std::vector<TracedCall> calls = Next();
    if (calls.empty()) break;  // stopping, and the queue is empty
    bool sent = false;
    AbandonOnBadAlloc([&] { sent = Send(calls); });
    if (sent) {
      exported_ += calls.size();
      continue;
    }
    Drop(TraceDrop::kSendFailed, calls.size());
    if (BackOff()) break;
  }
  MutexLock lock(&mutex_);
  done_ = true;
  wake_.SignalAll();
}

bool TraceExporter::Send(const std::vector<TracedCall>& calls) {
  const absl::Status status =
      poster_.Post("application/json", OtlpJson(calls, MakeSpanId), options_.timeout);
  if (status.ok() == failing_) {
    failing_ = !failing_;
    if (failing_) {
      Log(LogLevel::kWarn, "trace_export_failed", {{"reason", std::string(status.message())}});
    } else {
      Log(LogLevel::kInfo, "trace_export_recovered");
    }
  }
  if (status.ok()) next_retry_ = options_.retry;
  return status.ok();
}

bool TraceExporter::BackOff() {
  const Clock::time_point end = SteadyNow() + next_retry_;
  next_retry_ = std::min(2 * next_retry_, options_.max_retry);
  MutexLock lock(&mutex_);
  while (!stopping_ && SteadyNow() < end) wake_.WaitUntil(&mutex_, end);
  return stopping_;
}

}  // namespace crout
