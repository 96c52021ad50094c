// SPDX-License-Identifier: Apache-2.0

// Conversion of grpc::Status to absl::Status, with the server's error details.
#ifndef CROUT_CLIENT_CPP_GRPC_STATUS_H_
#define CROUT_CLIENT_CPP_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace crout {
inline namespace api {
namespace internal {

// Converts code and message. Each google.rpc detail becomes a payload under its type URL, such as
// "type.googleapis.com/google.rpc.ErrorInfo".
absl::Status ToAbslStatus(const grpc::Status& status);

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_GRPC_STATUS_H_
