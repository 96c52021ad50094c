// SPDX-License-Identifier: Apache-2.0

// The server's details of an error.
#ifndef CROUT_CROUT_STATUS_H_
#define CROUT_CROUT_STATUS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace crout {
inline namespace api {

// Stable reason of a refusal, such as "HANDLE_EXPIRED"; empty if the server sent none. The details
// of proto/google/rpc are payloads of the status, each under its type URL.
std::string Reason(const absl::Status& status);

// Delay after which the server allows a retry, if it sent one.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// Whether no server answered: UNAVAILABLE from gRPC, without details of a server.
bool IsUnreachable(const absl::Status& status);

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_STATUS_H_
