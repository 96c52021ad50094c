// SPDX-License-Identifier: Apache-2.0

// Redirects the messages of gRPC and protobuf, which would otherwise block on standard error.
#ifndef CROUT_SERVER_OBSERVABILITY_LOG_GRPC_LOG_H_
#define CROUT_SERVER_OBSERVABILITY_LOG_GRPC_LOG_H_

#include <cstdint>

namespace crout {

// Logs gRPC's messages (errors by default, see GRPC_VERBOSITY) as events of the daemon's log. Drops
// protobuf's messages: each concerns a request whose sender receives the error. Peers can cause any
// number of gRPC messages, so at most ten lines a second are logged. The next line reports how many
// were skipped. Call it after ConfigureLog and before the first use of either library.
void RedirectLibraryLogs();

// Returns the number of failed TLS handshakes since RedirectLibraryLogs(), counted from gRPC's
// messages. The messages do not name the peer. Always 0 with gRPC 1.66 or newer, which logs through
// Abseil.
uint64_t FailedHandshakes();

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_LOG_GRPC_LOG_H_
