// SPDX-License-Identifier: Apache-2.0

#ifndef CROUT_SERVER_RPC_SERVICE_H_
#define CROUT_SERVER_RPC_SERVICE_H_

#include <memory>

#include "grpcpp/impl/service_type.h"
#include "server/rpc/core.h"

namespace crout {

// Returns crout.v1.FactorizationService, whose RPCs are in server/rpc/handlers. The service is
// thread-safe. The core must outlive it and its calls.
std::unique_ptr<grpc::Service> MakeFactorizationService(ServerCore& core);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SERVICE_H_
