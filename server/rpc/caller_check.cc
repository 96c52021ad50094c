// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/caller_check.h"

#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"

namespace crout {

absl::Status CallerCheck::Admit(ServerCore& core, const grpc::CallbackServerContext& context,
                                const ObservedCall& call) {
  CROUT_ASSIGN_OR_RETURN(caller_, AdmitCaller(core, context, call));
  return absl::OkStatus();
}

bool CallerCheck::Delay(ServerCore& core, const absl::Status& status, size_t request_bytes) {
  if (ReasonOf(status) != kReasonUnknownToken) return false;
  refused_memory_ = core.refused_memory.TryReserve(ServerCore::kCallBytes + request_bytes);
  if (!refused_memory_) return false;
  refusal_ = status;
  refused_at_ = SteadyNow();
  return true;
}

absl::Status CallerCheck::Check(ServerCore& core, const ObservedCall& call, Clock::time_point now) {
  if (refusal_.ok()) return RecheckCaller(core, call, caller_);
  return now - refused_at_ >= kRefusalTime ? refusal_ : absl::OkStatus();
}

}  // namespace crout
