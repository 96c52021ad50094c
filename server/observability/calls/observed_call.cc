// SPDX-License-Identifier: Apache-2.0

#include "server/observability/calls/observed_call.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace crout {
namespace {

constexpr size_t kHandlePrefix = 6;  // recorded characters of a handle, out of 26

uint64_t NextCallId() {
  static std::atomic<uint64_t> next = 1;
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

ObservedCall::ObservedCall(Method method, std::string peer, std::optional<TraceContext> trace)
    : id(NextCallId()), method(method), peer(std::move(peer)), trace(std::move(trace)) {}

double ObservedCall::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double ObservedCall::StepSeconds() const { return in_step ? Seconds() - step_start : 0; }

void ObservedCall::BeginStep() {
  step_start = Seconds();
  in_step = true;
}

void ObservedCall::SetHandle(std::string_view text) {
  const std::optional<Handle> parsed = Handle::Parse(text);
  if (!parsed) return;
  handle = parsed;
  handle_prefix = text.substr(0, kHandlePrefix);
}

std::array<double, kJobPhaseNames.size()> PhasesOf(const CallTimings& timings) {
  return {timings.receive,        timings.queue,          timings.analyze,
          timings.host_to_device, timings.factor,         timings.solve,
          timings.refine,         timings.device_to_host, timings.send};
}

}  // namespace crout
