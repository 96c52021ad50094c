// SPDX-License-Identifier: Apache-2.0

// A handle's factor, for calls that take one kind of factor.
#ifndef CROUT_SERVER_RPC_ACQUIRE_H_
#define CROUT_SERVER_RPC_ACQUIRE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/core.h"

namespace crout {

// FactorCache::Acquire; FAILED_PRECONDITION, saying which calls take it, for a factor of the other
// kind.
absl::StatusOr<FactorCache::Pin> AcquireDense(ServerCore& core, const std::string& tenant,
                                              const Handle& handle);
absl::StatusOr<FactorCache::Pin> AcquireBatch(ServerCore& core, const std::string& tenant,
                                              const Handle& handle);

// INVALID_ARGUMENT, of `field`, where `device` names another one than the factor's.
absl::Status CheckDeviceOf(const std::string& device, const FactorCache::Pin& factor,
                           absl::string_view field);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_ACQUIRE_H_
