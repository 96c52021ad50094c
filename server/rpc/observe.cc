#include "server/rpc/observe.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "server/log.h"
#include "server/rpc/status.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

constexpr size_t kTraceParentBytes = 55;  // of version 00

// Only what has the form of a traceparent goes to the log: it comes from outside.
std::string TraceParent(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("traceparent");
  if (found == metadata.end() || found->second.size() != kTraceParentBytes) return "";
  std::string value(found->second.data(), found->second.size());
  if (value.find_first_not_of("0123456789abcdef-") != std::string::npos) return "";
  return value;
}

std::optional<Rejection> RejectionOf(const absl::Status& status) {
  static constexpr std::array<std::pair<std::string_view, Rejection>, 5> kReasons = {
      {{kReasonQueueFull, Rejection::kQueueFull},
       {kReasonMemoryExhausted, Rejection::kMemory},
       {kReasonDraining, Rejection::kDraining},
       {kReasonDeviceLost, Rejection::kDeviceLost},
       {kReasonUploadIdle, Rejection::kUploadIdle}}};
  const auto reason = ReasonOf(status);
  if (!reason) return std::nullopt;
  for (const auto& [name, rejection] : kReasons) {
    if (name == *reason) return rejection;
  }
  return std::nullopt;
}

bool IsServerFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kDataLoss ||
         code == absl::StatusCode::kUnknown;
}

uint64_t NextCallId() {
  static std::atomic<uint64_t> next = 1;
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

ObservedCall::ObservedCall(Method method, grpc::ServerContextBase* context)
    : id(NextCallId()), method(method), peer(context->peer()), trace_parent(TraceParent(*context)) {
  context->AddInitialMetadata("crout-call-id", std::to_string(id));
}

double ObservedCall::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void ObserveCall(ServerCore& core, const ObservedCall& call) {
  const double seconds = call.Seconds();
  core.metrics.ObserveRequest(call.method, call.status.code(), seconds);
  if (const auto rejection = RejectionOf(call.status)) core.metrics.CountRejected(*rejection);
  const CallTimings& t = call.timings;
  const std::array<double, 8> phases = {t.receive, t.queue,  t.host_to_device, t.factor,
                                        t.solve,   t.refine, t.device_to_host, t.send};
  for (size_t i = 0; i < phases.size(); ++i) {
    if (phases[i] > 0) core.metrics.ObservePhase(static_cast<JobPhase>(i), phases[i]);
  }

  nlohmann::ordered_json fields = {
      {"call", call.id},
      {"method", kMethodNames[static_cast<size_t>(call.method)]},
      {"code", CodeName(static_cast<grpc::StatusCode>(call.status.code()))},
      {"seconds", seconds},
      {"tenant", call.tenant},
      {"peer", call.peer}};
  if (!call.request_id.empty()) fields["request_id"] = call.request_id;
  if (call.n >= 0) fields["n"] = call.n;
  if (!call.device.empty()) fields["device"] = call.device;
  if (!call.trace_parent.empty()) fields["traceparent"] = call.trace_parent;
  if (!call.status.ok()) fields["message"] = call.status.message();
  Log(IsServerFault(call.status.code()) ? LogLevel::kError : LogLevel::kInfo, "call", fields);
}

}  // namespace crout
