// SPDX-License-Identifier: Apache-2.0

// What gRPC's listeners ask of those who connect.
#ifndef CROUT_SERVER_AUTH_LISTENER_CREDENTIALS_H_
#define CROUT_SERVER_AUTH_LISTENER_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/auth/tls_files.h"

namespace crout {

// TLS 1.2 or newer with `files`, which a TlsKeeper publishes, and which are read anew when they
// change: connections that begin later use the new ones, those that are open go on.
// Not enabled: nothing is asked, and nothing encrypted.
std::shared_ptr<grpc::ServerCredentials> ListenerCredentials(const TlsFiles& files);

// Whether `address`, "host:port", is reached from this machine alone.
bool IsLoopbackAddress(const std::string& address);

// FAILED_PRECONDITION where one of `addresses`, good ones of --listen, could be reached from other
// machines in plain text: without TLS there are Unix sockets and addresses of loopback alone.
// Names other than localhost count as other machines', whatever they resolve to.
absl::Status CheckExposure(const std::vector<std::string>& addresses, const TlsFiles& files);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_LISTENER_CREDENTIALS_H_
