// What a client shows a server: the credentials of its channel, and its token.
#ifndef CROUT_CLIENT_CPP_CREDENTIALS_H_
#define CROUT_CLIENT_CPP_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "crout/options.h"

namespace crout::client {

// TLS as `tls` says; none without. Reads the files: the statuses of TlsOptions.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const std::optional<TlsOptions>& tls);

// The token to send with every call, "" for none. Reads the file: the statuses of ClientOptions.
absl::StatusOr<std::string> LoadToken(const ClientOptions& options);

// `status` of a call, with what to do where no connection came about for want of a server, of TLS,
// or of a certificate that the other side takes. `tls`: whether the client speaks it.
absl::Status ExplainConnection(absl::Status status, bool tls);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_CREDENTIALS_H_
