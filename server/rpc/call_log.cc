#include "server/rpc/call_log.h"

#include <array>
#include <string>
#include <utility>

#include "kernels/util/clock.h"
#include "server/log.h"
#include "server/rpc/observe.h"
#include "server/rpc/status.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

using Fields = nlohmann::ordered_json;

bool IsServerFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kDataLoss ||
         code == absl::StatusCode::kUnknown;
}

void AddStatus(const absl::Status& status, Fields& fields) {
  fields["code"] = CodeName(static_cast<grpc::StatusCode>(status.code()));
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
  AddText("peer", call.peer, fields);
  AddText("request_id", call.request_id, fields);
  AddText("trace_id", call.trace_id, fields);
  AddText("handle_prefix", call.handle_prefix, fields);
  AddText("algorithm", call.algorithm, fields);
  AddText("device", call.device, fields);
  if (call.n >= 0) fields["n"] = call.n;
  if (call.received_bytes > 0) fields["received_bytes"] = call.received_bytes;
  if (call.sent_bytes > 0) fields["sent_bytes"] = call.sent_bytes;
  AddPhases(call.timings, fields);
  return fields;
}

}  // namespace

std::optional<int64_t> CallLog::Admit(bool always, bool fault) {
  const auto now = SteadyNow();
  MutexLock lock(&mutex_);
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    lines_ = 0;
  }
  bool due = always || options_.calls == LogCalls::kAll;
  if (!due && options_.calls == LogCalls::kSampled) due = lines_ < kSampledPerSecond;
  if (options_.calls == LogCalls::kNone) due = fault;
  if (!due) {
    ++skipped_;
    return std::nullopt;
  }
  if (!always) ++lines_;
  return std::exchange(skipped_, 0);
}

bool CallLog::AdmitEvent() {
  const std::optional<int64_t> skipped = Admit(/*always=*/false, /*fault=*/false);
  if (!skipped) return false;
  MutexLock lock(&mutex_);
  skipped_ += *skipped;  // for a line of its own kind
  return true;
}

void CallLog::Write(const ObservedCall& call, double seconds) {
  const bool fault = IsServerFault(call.status.code());
  const bool slow = seconds >= absl::ToDoubleSeconds(options_.slow);
  const std::optional<int64_t> skipped = Admit(fault || slow, fault);
  if (!skipped) return;
  Fields fields = FieldsOf(call, seconds);
  if (slow) fields["slow"] = true;
  if (*skipped > 0) fields["skipped"] = *skipped;
  Log(fault ? LogLevel::kError : LogLevel::kInfo, "call", fields);
}

}  // namespace crout
