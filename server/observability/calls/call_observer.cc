// SPDX-License-Identifier: Apache-2.0

#include "server/observability/calls/call_observer.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/util/clock.h"
#include "server/engine/error.h"
#include "server/net/transfer_watch.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

std::optional<Rejection> RejectionOf(const absl::Status& status) {
  static constexpr std::array<std::pair<std::string_view, Rejection>, 8> kReasons = {
      {{kReasonQueueFull, Rejection::kQueueFull},
       {kReasonMemoryExhausted, Rejection::kMemory},
       {kReasonQuotaExceeded, Rejection::kQuota},
       {kReasonDraining, Rejection::kDraining},
       {kReasonDeviceLost, Rejection::kDeviceLost},
       {kReasonGroupLost, Rejection::kGroupLost},
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
void LogPoor(CallLog& log, const ObservedCall& call, std::string_view event,
             const nlohmann::ordered_json& result) {
  if (!log.AdmitEvent()) return;
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

// Logs the event "audit" for a finished call that creates, replaces or releases factors, regardless
// of the options of CallLog. The line contains the caller, the method, the byte counts and the
// result. It contains no payload, and only the first characters of a handle. Does nothing if the
// call cannot change factors or its caller is not authenticated.
void Audit(const ObservedCall& call) {
  if (call.identity.empty() || !call.audited) return;
  nlohmann::ordered_json fields = {{"call", call.id},
                                   {"identity", call.identity},
                                   {"tenant", call.tenant},
                                   {"peer", call.peer},
                                   {"method", kMethodNames[static_cast<size_t>(call.method)]},
                                   {"handle_prefix", call.handle_prefix},
                                   {"received_bytes", call.received_bytes},
                                   {"factor_bytes", call.factor_bytes},
                                   {"code", absl::StatusCodeToString(call.status.code())}};
  if (const auto reason = ReasonOf(call.status)) fields["reason"] = *reason;
  Log(LogLevel::kInfo, "audit", fields);
}

}  // namespace

void CallObserver::Quality(const ObservedCall& call, const FactorSummary& factor) {
  if (!factor.is_poor()) return;
  metrics_.CountPoorResult(factor.algorithm, PoorResult::kFactor);
  LogPoor(log_, call, "poor_factor",
          {{"algorithm", factor.algorithm},
           {"n", factor.n},
           {"quality", JsonNumber(factor.quality.value_or(std::nan("")))},
           {"pivot_growth", JsonNumber(factor.pivot_growth)}});
}

void CallObserver::Complement(const ObservedCall& call, const FactorSummary& leading,
                              const SchurSummary& complement) {
  if (!complement.is_poor) return;
  metrics_.CountPoorResult(leading.algorithm, PoorResult::kComplement);
  LogPoor(log_, call, "poor_complement",
          {{"algorithm", leading.algorithm},
           {"n", call.n},
           {"backward_error", JsonNumber(complement.backward_error)},
           {"growth", JsonNumber(complement.growth)}});
}

void CallObserver::PoorEchelonForm(const ObservedCall& call, const EchelonForm& form) {
  LogPoor(log_, call, "poor_echelon_form",
          {{"rank", form.rank()}, {"pivot_growth", JsonNumber(form.growth)}});
}

void CallObserver::ObserveWork(const ObservedCall& call, double seconds) {
  metrics_.ObserveDuration(call.method, seconds);
  const auto phases = PhasesOf(call.timings);
  for (size_t i = 0; i < phases.size(); ++i) {
    if (phases[i] > 0) metrics_.ObservePhase(static_cast<JobPhase>(i), phases[i]);
  }
  recent_work_.Ended(seconds, [&] { return Summarize(call); });
  if (traces_ == nullptr || !call.trace || !call.trace->sampled) return;
  EndedCall ended = Summarize(call);
  ended.seconds = seconds;
  ended.ended = WallNow();
  traces_->Add({*call.trace, std::move(ended)});
}

void CallObserver::OverdueJob(const ObservedCall& call, std::string_view device, double seconds,
                              double predicted_seconds) {
  if (!log_.AdmitEvent()) return;
  Log(LogLevel::kWarn, "job_overdue",
      {{"call", call.id},
       {"method", kMethodNames[static_cast<size_t>(call.method)]},
       {"tenant", call.tenant},
       {"device", device},
       {"seconds", seconds},
       {"predicted_seconds", predicted_seconds}});
}

void CallObserver::EndStep(ObservedCall& call) {
  const double seconds = call.StepSeconds();
  ++call.steps;
  ObserveWork(call, seconds);
  log_.WriteStep(call, seconds);
  call.timings = {};
  call.in_step = false;
}

void CallObserver::End(const ObservedCall& call) {
  metrics_.CountRequest(call.method, call.status.code());
  if (const auto rejection = RejectionOf(call.status))
    metrics_.CountRejected(*rejection, call.tenant);
  if (call.in_step) ObserveWork(call, call.StepSeconds());
  log_.Write(call, call.Seconds());
  Audit(call);
}

}  // namespace crout
