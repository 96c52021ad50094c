// SPDX-License-Identifier: Apache-2.0

#include "server/observability/calls/call_log.h"

#include <array>
#include <string>
#include <utility>

#include "kernels/util/clock.h"
#include "server/engine/error.h"
#include "server/observability/calls/observed_call.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

using Fields = nlohmann::ordered_json;

bool IsServerFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kDataLoss ||
         code == absl::StatusCode::kUnknown;
}

void AddStatus(const absl::Status& status, Fields& fields) {
  fields["code"] = absl::StatusCodeToString(status.code());
  if (status.ok()) return;
  if (const auto reason = ReasonOf(status)) fields["reason"] = *reason;
  fields["message"] = status.message();
}

void AddText(const char* name, const std::string& text, Fields& fields) {
  if (!text.empty()) fields[name] = text;
}

void AddPhases(const CallTimings& timings, Fields& fields) {
  const std::array<double, kJobPhaseNames.size()> phases = PhasesOf(timings);
  for (size_t i = 0; i < phases.size(); ++i) {
    if (phases[i] > 0) fields[std::string(kJobPhaseNames[i]) + "_seconds"] = phases[i];
  }
}

Fields FieldsOf(const ObservedCall& call, double seconds) {
  Fields fields = {{"call", call.id}, {"method", kMethodNames[static_cast<size_t>(call.method)]}};
  AddStatus(call.status, fields);
  fields["seconds"] = seconds;
  AddText("tenant", call.tenant, fields);
  AddText("identity", call.identity, fields);
  AddText("peer", call.peer, fields);
  AddText("request_id", call.request_id, fields);
  if (call.trace) fields["trace_id"] = call.trace->trace_id;
  AddText("handle_prefix", call.handle_prefix, fields);
  AddText("algorithm", call.algorithm, fields);
  AddText("device", call.device, fields);
  if (call.n >= 0) fields["n"] = call.n;
  if (call.steps > 0) fields["steps"] = call.steps;
  if (call.received_bytes > 0) fields["received_bytes"] = call.received_bytes;
  if (call.sent_bytes > 0) fields["sent_bytes"] = call.sent_bytes;
  AddPhases(call.timings, fields);
  return fields;
}

}  // namespace

bool CallLog::IsDue(Kind kind) const {
  if (kind == Kind::kFault || options_.calls == LogCalls::kAll) return true;
  if (options_.calls == LogCalls::kNone) return false;
  const int lines = lines_[static_cast<size_t>(kind)];
  if (kind == Kind::kSlow) return lines < kSlowPerSecond;
  return options_.calls == LogCalls::kSampled && lines < kSampledPerSecond;
}

std::optional<int64_t> CallLog::Admit(Kind kind) {
  const auto now = SteadyNow();
  MutexLock lock(&mutex_);
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    lines_ = {};
  }
  if (!IsDue(kind)) {
    ++skipped_;
    return std::nullopt;
  }
  ++lines_[static_cast<size_t>(kind)];
  return std::exchange(skipped_, 0);
}

bool CallLog::AdmitEvent() {
  const std::optional<int64_t> skipped = Admit(Kind::kOther);
  if (!skipped) return false;
  MutexLock lock(&mutex_);
  skipped_ += *skipped;  // for the next line that reports skipped calls
  return true;
}

void CallLog::WriteStep(const ObservedCall& call, double seconds) {
  if (seconds < absl::ToDoubleSeconds(options_.slow)) return;
  const std::optional<int64_t> skipped = Admit(Kind::kSlow);
  if (!skipped) return;
  Fields fields = FieldsOf(call, seconds);
  fields["slow"] = true;
  if (*skipped > 0) fields["skipped"] = *skipped;
  Log(LogLevel::kInfo, "step", fields);
}

void CallLog::Write(const ObservedCall& call, double seconds) {
  const bool fault = IsServerFault(call.status.code());
  const double measured = call.steps > 0 ? call.StepSeconds() : seconds;
  const bool slow = measured >= absl::ToDoubleSeconds(options_.slow);
  const Kind kind = fault ? Kind::kFault : slow ? Kind::kSlow : Kind::kOther;
  const std::optional<int64_t> skipped = Admit(kind);
  if (!skipped) return;
  Fields fields = FieldsOf(call, seconds);
  if (slow) fields["slow"] = true;
  if (*skipped > 0) fields["skipped"] = *skipped;
  Log(fault ? LogLevel::kError : LogLevel::kInfo, "call", fields);
}

}  // namespace crout
