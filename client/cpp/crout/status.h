// grpc::Status as absl::Status, with the details that the server attached.
#ifndef CROUT_CROUT_STATUS_H_
#define CROUT_CROUT_STATUS_H_

#include <grpcpp/support/status.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"

namespace crout::client {

// Same code and message; every google.rpc detail is a payload under its type URL
// ("type.googleapis.com/google.rpc.ErrorInfo").
absl::Status ToAbslStatus(const grpc::Status& status);

// The server's ErrorInfo, if there is one. Statuses that gRPC or this library made have none.
std::optional<google::rpc::ErrorInfo> ErrorInfoOf(const absl::Status& status);

// ErrorInfo.reason ("FACTOR_NOT_FOUND"); empty where there is none.
std::string Reason(const absl::Status& status);

// When the server said that the call may be tried again.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// No server answered: UNAVAILABLE that came from no server, as opposed to a server that refuses.
bool IsUnreachable(const absl::Status& status);

}  // namespace crout::client

#endif  // CROUT_CROUT_STATUS_H_
