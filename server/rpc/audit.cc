// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/audit.h"

#include "server/engine/error.h"
#include "server/observability/log/log.h"
#include "server/rpc/caller.h"
#include "server/rpc/codec/status.h"

namespace crout {

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

}  // namespace crout
