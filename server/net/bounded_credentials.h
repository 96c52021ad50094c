// SPDX-License-Identifier: Apache-2.0

// Passes each new call to ConnectionCalls as soon as its header has arrived.
#ifndef CROUT_SERVER_NET_BOUNDED_CREDENTIALS_H_
#define CROUT_SERVER_NET_BOUNDED_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>
#include <string>

#include "server/net/connection_calls.h"

namespace crout {

// Server credentials that let `calls` refuse a new call with RESOURCE_EXHAUSTED. `calls` outlives
// the server. gRPC runs the check on the thread that reads from the connection, before it creates a
// server call, and frees a refused call at once.
//
// BoundedTls adds the check to the TLS credentials `credentials`. BoundedInsecure creates new
// credentials for plain connections, because gRPC's own insecure credentials do not support such a
// check.
std::shared_ptr<grpc::ServerCredentials> BoundedTls(
    std::shared_ptr<grpc::ServerCredentials> credentials, ConnectionCalls& calls);
// If `user` is set, it is called when the first call of a connection arrives. It returns the user
// at the other end of the connection, which gRPC does not provide (kUserProperty).
std::shared_ptr<grpc::ServerCredentials> BoundedInsecure(
    ConnectionCalls& calls, std::function<std::string()> user = nullptr);

}  // namespace crout

#endif  // CROUT_SERVER_NET_BOUNDED_CREDENTIALS_H_
