// SPDX-License-Identifier: Apache-2.0

// The daemon's log on standard error: events with fields, as text or as one JSON object per line.
// The log never contains payloads or handles (a handle grants access).
//
// Logging never waits for the reader of standard error. A thread writes from a buffer of 1 MiB.
// Lines that do not fit into the buffer are dropped and counted.
#ifndef CROUT_SERVER_OBSERVABILITY_LOG_LOG_H_
#define CROUT_SERVER_OBSERVABILITY_LOG_LOG_H_

#include <chrono>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace crout {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Call once, before the first event. Drops events below `level`. Starts the writer thread.
void ConfigureLog(LogLevel level, LogFormat format);

// `event` is a fixed name: a noun and a past participle, such as "caller_refused". Lines that
// describe an object have its name ("call", "audit"), and warnings about results have the name of
// the warning. `fields` is a flat object. Thread-safe. Does not block.
void Log(LogLevel level, std::string_view event,
         const nlohmann::ordered_json& fields = nlohmann::ordered_json::object());

// Waits until all lines are written, or until standard error has accepted nothing for `timeout`.
// Call it before the process exits.
void FlushLog(std::chrono::milliseconds timeout = std::chrono::seconds(1));

// Number of lines dropped since the process started.
uint64_t DroppedLogLines();

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

#endif  // CROUT_SERVER_OBSERVABILITY_LOG_LOG_H_
