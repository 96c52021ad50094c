// SPDX-License-Identifier: Apache-2.0

// RenewLease and ReleaseFactor: move the end of a factor.
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

absl::Status ReleaseFactor(ServerCore& core, const Scope& scope,
                           const v1::ReleaseFactorRequest& request,
                           v1::ReleaseFactorResponse* /*response*/) {
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request.handle()));
  return core.engine.cache.Release(scope.tenant, handle);
}

ThreadPool& ReleasingThreads(ServerCore& core, const std::string& tenant,
                             const v1::ReleaseFactorRequest& request) {
  const absl::StatusOr<Handle> handle = DecodeHandle(request.handle());
  if (!handle.ok()) return core.releasing;
  const absl::StatusOr<DeviceSlot*> slot = core.engine.cache.SlotOf(tenant, *handle);
  return slot.ok() ? *(*slot)->releasing : core.releasing;
}

}  // namespace crout
