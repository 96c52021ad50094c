// SPDX-License-Identifier: Apache-2.0

// Credentials of a client: channel credentials and token.
#ifndef CROUT_CLIENT_CPP_CREDENTIALS_H_
#define CROUT_CLIENT_CPP_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "crout/client_options.h"

namespace crout {
inline namespace api {
namespace internal {

// Makes channel credentials for TLS; without `tls`, for no encryption. Reads the files; errors as
// for TlsOptions.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const std::optional<TlsOptions>& tls);

// Returns the token for every call; "" for none. Reads the file; errors as for ClientOptions.
absl::StatusOr<std::string> LoadToken(const ClientOptions& options);

// Adds a hint to the `status` of a call whose connection failed because of an unknown host, no
// server, TLS on one side only, or a rejected certificate. `tls`: whether the client uses TLS.
absl::Status ExplainConnection(absl::Status status, bool tls);

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_CREDENTIALS_H_
