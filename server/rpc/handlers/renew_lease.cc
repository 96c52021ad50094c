// SPDX-License-Identifier: Apache-2.0

// RenewLease: changes the end of a factor's lease.
#include "kernels/util/status_macros.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/handlers/handlers.h"

namespace crout {

absl::Status RenewLease(ServerCore& core, const Scope& scope, const v1::RenewLeaseRequest& request,
                        v1::RenewLeaseResponse* response) {
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request.handle()));
  CROUT_ASSIGN_OR_RETURN(const absl::Duration lease,
                         DecodeLease(request.lease(), "lease", core.limits));
  // A caller that may not release a factor may not shorten its lease either.
  const Renewal renewal = scope.has(Role::kFactor) ? Renewal::kReplace : Renewal::kLengthen;
  CROUT_ASSIGN_OR_RETURN(const FactorInfo info,
                         core.engine.cache.Renew(scope.tenant, handle, lease, renewal));
  *response->mutable_lease_expire_time() = EncodeTime(info.lease_expire_time);
  return absl::OkStatus();
}

}  // namespace crout
