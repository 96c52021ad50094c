// SPDX-License-Identifier: Apache-2.0

// ReleaseFactor: removes a factor from the cache.
#include "kernels/util/status_macros.h"
#include "server/rpc/codec/decode_matrix.h"
#include "server/rpc/handlers/handlers.h"

namespace crout {

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
