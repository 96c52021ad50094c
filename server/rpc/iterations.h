// SPDX-License-Identifier: Apache-2.0

// Implements GetIterations: returns the iteration counts of a factor in pages.
#ifndef CROUT_SERVER_RPC_ITERATIONS_H_
#define CROUT_SERVER_RPC_ITERATIONS_H_

#include <string>

#include "absl/status/status.h"
#include "crout/v1/factorization_service.pb.h"
#include "server/rpc/caller.h"
#include "server/rpc/core.h"

namespace crout {

// Fills `response` with one page. Returns the status of the RPC.
absl::Status GetIterations(ServerCore& core, const Scope& scope,
                           const v1::GetIterationsRequest& request,
                           v1::GetIterationsResponse* response);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_ITERATIONS_H_
