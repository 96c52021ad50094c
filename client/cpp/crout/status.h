// SPDX-License-Identifier: Apache-2.0

// Conversion of grpc::Status to absl::Status, with the server's error details.
#ifndef CROUT_CROUT_STATUS_H_
#define CROUT_CROUT_STATUS_H_

#include <grpcpp/support/status.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"

namespace crout::client {

// Converts code and message. Each google.rpc detail becomes a payload under its type URL, such as
// "type.googleapis.com/google.rpc.ErrorInfo".
absl::Status ToAbslStatus(const grpc::Status& status);

// The server's ErrorInfo, if there is one. Statuses from gRPC have none.
std::optional<google::rpc::ErrorInfo> ErrorInfoOf(const absl::Status& status);

// ErrorInfo.reason, such as "HANDLE_EXPIRED"; empty if there is none.
std::string Reason(const absl::Status& status);

// Delay after which the server allows a retry, if it sent one.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// Whether no server answered: UNAVAILABLE from gRPC, without ErrorInfo of a server.
bool IsUnreachable(const absl::Status& status);

}  // namespace crout::client

#endif  // CROUT_CROUT_STATUS_H_
