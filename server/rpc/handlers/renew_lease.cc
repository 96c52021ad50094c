// SPDX-License-Identifier: Apache-2.0

// RenewLease: changes the end of a factor's lease, and pins or unpins the factor.
#include <optional>

#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/handlers/handlers.h"

namespace crout {

absl::Status RenewLease(ServerCore& core, const Scope& scope, const v1::RenewLeaseRequest& request,
                        v1::RenewLeaseResponse* response) {
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request.handle()));
  std::optional<absl::Duration> lease;
  if (request.has_lease() || !request.has_pin()) {
    CROUT_ASSIGN_OR_RETURN(lease, DecodeLease(request.lease(), "lease", core.limits));
  }
  // A caller that may not release a factor may not shorten its lease either.
  const Renewal renewal = scope.has(Role::kFactor) ? Renewal::kReplace : Renewal::kLengthen;
  std::optional<bool> pin;
  if (request.has_pin()) {
    if (!scope.has(Role::kFactor)) {
      return FieldError(absl::StatusCode::kPermissionDenied, "pin",
                        "the caller needs the role factor to pin or unpin a factor: leave pin out");
    }
    pin = request.pin();
  }
  CROUT_ASSIGN_OR_RETURN(const FactorInfo info,
                         core.engine.cache.Renew(scope.tenant, handle, lease, renewal, pin));
  *response->mutable_lease_expire_time() = EncodeTime(info.lease_expire_time);
  return absl::OkStatus();
}

}  // namespace crout
