// SPDX-License-Identifier: Apache-2.0

// What the server can do, and what a factorization would take.
#ifndef CROUT_SERVER_RPC_SERVER_INFO_H_
#define CROUT_SERVER_RPC_SERVER_INFO_H_

#include "absl/status/status.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/rpc/caller.h"
#include "server/rpc/core.h"

namespace crout {

// Tenants as far as `scope` has them.
void DescribeServer(ServerCore& core, const Scope& scope, v1::GetServerInfoResponse* response);

// The statuses of EstimateFactorize.
absl::Status EstimateFactorization(ServerCore& core, const Scope& scope,
                                   const v1::EstimateFactorizeRequest& request,
                                   v1::EstimateFactorizeResponse* response);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SERVER_INFO_H_
