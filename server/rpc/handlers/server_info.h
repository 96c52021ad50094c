// SPDX-License-Identifier: Apache-2.0

// GetServerInfo and EstimateFactorize.
#ifndef CROUT_SERVER_RPC_HANDLERS_SERVER_INFO_H_
#define CROUT_SERVER_RPC_HANDLERS_SERVER_INFO_H_

#include "absl/status/status.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/rpc/caller.h"
#include "server/rpc/core.h"

namespace crout {

// Describes the server, its devices and its limits. Lists the load of the largest tenants for an
// admin and only the caller's own load for other scopes.
void DescribeServer(ServerCore& core, const Scope& scope, v1::GetServerInfoResponse* response);

// Returns the statuses documented for the EstimateFactorize method.
absl::Status EstimateFactorization(ServerCore& core, const Scope& scope,
                                   const v1::EstimateFactorizeRequest& request,
                                   v1::EstimateFactorizeResponse* response);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_HANDLERS_SERVER_INFO_H_
