// SPDX-License-Identifier: Apache-2.0

// Credentials of gRPC's listeners, and the rule for plaintext addresses.
#ifndef CROUT_SERVER_AUTH_LISTENER_CREDENTIALS_H_
#define CROUT_SERVER_AUTH_LISTENER_CREDENTIALS_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/auth/tls_files.h"

namespace crout {

// Returns credentials for TLS 1.2 or newer with `files`, the files that a TlsReloader publishes.
// gRPC reloads them when they change; open connections continue with the old files. If TLS is not
// enabled, returns insecure credentials.
std::shared_ptr<grpc::ServerCredentials> ListenerCredentials(const TlsFiles& files);

// Returns the names in the client's certificate if the TLS handshake has verified it: its SPIFFE
// IDs or, if it has none, its DNS names. `peer`: may be null.
std::vector<std::string> VerifiedNames(const grpc::AuthContext* peer);

// Returns true if `address`, "host:port", is reachable only from this machine.
bool IsLoopbackAddress(const std::string& address);

// FAILED_PRECONDITION if one of `addresses` is reachable from other machines without encryption.
// Without TLS only Unix sockets and loopback addresses are allowed. Host names other than localhost
// count as remote, even if they resolve to a loopback address. `addresses` must be valid values of
// --listen. The message names the setting `flag`.
absl::Status CheckExposure(const std::vector<std::string>& addresses, const TlsFiles& files,
                           std::string_view flag = "--listen");

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_LISTENER_CREDENTIALS_H_
