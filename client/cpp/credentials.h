// The credentials of a client's channel.
#ifndef CROUT_CLIENT_CPP_CREDENTIALS_H_
#define CROUT_CLIENT_CPP_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "crout/options.h"

namespace crout::client {

// TLS as `tls` says; none without. Reads the files: the statuses of TlsOptions.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const std::optional<TlsOptions>& tls);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_CREDENTIALS_H_
