// SPDX-License-Identifier: Apache-2.0

// Shows ConnectionCalls each call as soon as its header has arrived.
#ifndef CROUT_SERVER_RPC_ARRIVING_CALLS_H_
#define CROUT_SERVER_RPC_ARRIVING_CALLS_H_

#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>
#include <string>

#include "server/rpc/connection_calls.h"

namespace crout {

// Credentials of a listener whose calls `calls`, which outlives the server, may refuse with
// RESOURCE_EXHAUSTED. gRPC asks on the thread that reads from the connection, before it makes the
// call one of the server's, and frees a refused call at once.
//
// For TLS, `credentials` with that added; for plain connections, which gRPC's own credentials let
// nobody look at, new ones.
std::shared_ptr<grpc::ServerCredentials> BoundedTls(
    std::shared_ptr<grpc::ServerCredentials> credentials, ConnectionCalls& calls);
// `user`, if there is one, names the user of a connection's peer when its first call arrives: gRPC
// does not (kUserProperty).
std::shared_ptr<grpc::ServerCredentials> BoundedInsecure(
    ConnectionCalls& calls, std::function<std::string()> user = nullptr);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_ARRIVING_CALLS_H_
