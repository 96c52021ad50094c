// SPDX-License-Identifier: Apache-2.0

// What libraries would write to standard error themselves, waiting for whoever reads it.
#ifndef CROUT_SERVER_OBSERVABILITY_LOG_GRPC_LOG_H_
#define CROUT_SERVER_OBSERVABILITY_LOG_GRPC_LOG_H_

#include <cstdint>

namespace crout {

// From now on gRPC's messages (those of GRPC_VERBOSITY: errors by default) are events of our log,
// and protobuf's, each about a request whose sender is told, are dropped. After ConfigureLog,
// before the first use of either. Peers cause gRPC's at will: of those there are at most ten lines
// a second, and the next says how many were skipped.
void TakeLibraryLogs();

// Connections whose TLS handshake failed since then, as gRPC's messages tell; which peer's it was
// they do not. 0 with gRPC 1.66 or newer, whose messages go elsewhere.
uint64_t FailedHandshakes();

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_LOG_GRPC_LOG_H_
