// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/observe.h"

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/util/clock.h"
#include "server/engine/error.h"
#include "server/observability/log/log.h"
#include "server/rpc/caller.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

constexpr size_t kHandlePrefix = 6;  // recorded characters of a handle, out of 26

std::optional<TraceContext> TraceOf(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("traceparent");
  if (found == metadata.end()) return std::nullopt;
  return ParseTraceparent({found->second.data(), found->second.size()});
}

std::optional<Rejection> RejectionOf(const absl::Status& status) {
  static constexpr std::array<std::pair<std::string_view, Rejection>, 7> kReasons = {
      {{kReasonQueueFull, Rejection::kQueueFull},
       {kReasonMemoryExhausted, Rejection::kMemory},
       {kReasonQuotaExceeded, Rejection::kQuota},
       {kReasonDraining, Rejection::kDraining},
       {kReasonDeviceLost, Rejection::kDeviceLost},
       {kReasonUploadIdle, Rejection::kUploadIdle},
       {kReasonUploadSlow, Rejection::kUploadIdle}}};
  const auto reason = ReasonOf(status);
  if (!reason) return std::nullopt;
  for (const auto& [name, rejection] : kReasons) {
    if (name == *reason) return rejection;
  }
  return std::nullopt;
}

// JSON has no Infinity or NaN.
nlohmann::ordered_json JsonNumber(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : "Infinity";
}

// Logs a poor result, unless clients cause too many log lines.
void LogPoor(ServerCore& core, const ObservedCall& call, std::string_view event,
             const nlohmann::ordered_json& result) {
  if (!core.call_log.AdmitEvent()) return;
  nlohmann::ordered_json fields = {
      {"call", call.id}, {"tenant", call.tenant}, {"device", call.device}};
  fields.update(result);
  Log(LogLevel::kWarn, event, fields);
}

EndedCall Summarize(const ObservedCall& call) {
  EndedCall ended;
  ended.id = call.id;
  ended.method = call.method;
  ended.code = call.status.code();
  ended.tenant = call.tenant;
  ended.algorithm = call.algorithm;
  ended.device = call.device;
  ended.n = call.n;
  ended.phases = PhasesOf(call.timings);
  return ended;
}

uint64_t NextCallId() {
  static std::atomic<uint64_t> next = 1;
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Logs the event "audit" for a finished call that creates, replaces or releases factors, regardless
// of the options of CallLog. The line contains the caller, the method, the byte counts and the
// result. It contains no payload, and only the first characters of a handle. Does nothing if the
// call cannot change factors or its caller is not authenticated.
void Audit(const ObservedCall& call) {
  // Calls that change factors are those that require the role kFactor.
  if (call.identity.empty() || RoleFor(call.method) != Role::kFactor) return;
  nlohmann::ordered_json fields = {
      {"call", call.id},
      {"identity", call.identity},
      {"tenant", call.tenant},
      {"peer", call.peer},
      {"method", kMethodNames[static_cast<size_t>(call.method)]},
      {"handle_prefix", call.handle_prefix},
      {"received_bytes", call.received_bytes},
      {"factor_bytes", call.factor_bytes},
      {"code", CodeName(static_cast<grpc::StatusCode>(call.status.code()))}};
  if (const auto reason = ReasonOf(call.status)) fields["reason"] = *reason;
  Log(LogLevel::kInfo, "audit", fields);
}

}  // namespace

ObservedCall::ObservedCall(Method method, grpc::ServerContextBase* context)
    : id(NextCallId()), method(method), peer(context->peer()), trace(TraceOf(*context)) {
  context->AddInitialMetadata("crout-call-id", std::to_string(id));
}

double ObservedCall::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double ObservedCall::StepSeconds() const { return in_step ? Seconds() - step_start : 0; }

void ObservedCall::BeginStep() {
  step_start = Seconds();
  in_step = true;
}

void ObservedCall::SetHandle(std::string_view handle) {
  if (Handle::Parse(handle)) handle_prefix = handle.substr(0, kHandlePrefix);
}

std::array<double, kJobPhaseNames.size()> PhasesOf(const CallTimings& timings) {
  return {timings.receive,        timings.queue,          timings.analyze,
          timings.host_to_device, timings.factor,         timings.solve,
          timings.refine,         timings.device_to_host, timings.send};
}

void ObserveQuality(ServerCore& core, const ObservedCall& call, const FactorSummary& factor) {
  if (!factor.is_poor()) return;
  core.metrics.CountPoorResult(factor.algorithm, PoorResult::kFactor);
  LogPoor(core, call, "poor_factor",
          {{"algorithm", factor.algorithm},
           {"n", factor.n},
           {"quality", JsonNumber(factor.quality.value_or(std::nan("")))},
           {"pivot_growth", JsonNumber(factor.pivot_growth)}});
}

void ObserveComplement(ServerCore& core, const ObservedCall& call, const FactorSummary& leading,
                       const SchurSummary& complement) {
  if (!complement.is_poor) return;
  core.metrics.CountPoorResult(leading.algorithm, PoorResult::kComplement);
  LogPoor(core, call, "poor_complement",
          {{"algorithm", leading.algorithm},
           {"n", call.n},
           {"backward_error", JsonNumber(complement.backward_error)},
           {"growth", JsonNumber(complement.growth)}});
}

void LogPoorEchelonForm(ServerCore& core, const ObservedCall& call, const EchelonForm& form) {
  LogPoor(core, call, "poor_echelon_form",
          {{"rank", form.rank()}, {"pivot_growth", JsonNumber(form.growth)}});
}

namespace {

void ObserveWork(ServerCore& core, const ObservedCall& call, double seconds) {
  core.metrics.ObserveDuration(call.method, seconds);
  const auto phases = PhasesOf(call.timings);
  for (size_t i = 0; i < phases.size(); ++i) {
    if (phases[i] > 0) core.metrics.ObservePhase(static_cast<JobPhase>(i), phases[i]);
  }
  core.recent_work.Ended(seconds, [&] { return Summarize(call); });
  if (core.traces == nullptr || !call.trace || !call.trace->sampled) return;
  EndedCall ended = Summarize(call);
  ended.seconds = seconds;
  ended.ended = WallNow();
  core.traces->Add({*call.trace, std::move(ended)});
}

}  // namespace

void LogOverdueJob(ServerCore& core, const ObservedCall& call, std::string_view device,
                   double seconds, double predicted_seconds) {
  if (!core.call_log.AdmitEvent()) return;
  Log(LogLevel::kWarn, "job_overdue",
      {{"call", call.id},
       {"method", kMethodNames[static_cast<size_t>(call.method)]},
       {"tenant", call.tenant},
       {"device", device},
       {"seconds", seconds},
       {"predicted_seconds", predicted_seconds}});
}

void ObserveStep(ServerCore& core, ObservedCall& call) {
  const double seconds = call.StepSeconds();
  ++call.steps;
  ObserveWork(core, call, seconds);
  core.call_log.WriteStep(call, seconds);
  call.timings = {};
  call.in_step = false;
}

void ObserveCall(ServerCore& core, const ObservedCall& call) {
  core.metrics.CountRequest(call.method, call.status.code());
  if (const auto rejection = RejectionOf(call.status)) core.metrics.CountRejected(*rejection);
  if (call.in_step) ObserveWork(core, call, call.StepSeconds());
  core.call_log.Write(call, call.Seconds());
  Audit(call);
}

}  // namespace crout
