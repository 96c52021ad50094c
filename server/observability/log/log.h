// SPDX-License-Identifier: Apache-2.0

// The daemon's log, to standard error: events with fields, as text or one JSON object a line.
// Payloads and handles (they are capabilities) never go there.
//
// Nothing waits for whoever reads standard error: a thread writes, from a buffer of a
// megabyte; what does not fit is dropped and counted.
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

// Once, before the first event; events below `level` are dropped. Starts the thread that writes.
void ConfigureLog(LogLevel level, LogFormat format);

// `event`: lower_snake_case, fixed words. `fields`: a flat object. Thread-safe; does not block.
void Log(LogLevel level, std::string_view event,
         const nlohmann::ordered_json& fields = nlohmann::ordered_json::object());

// Waits until everything is written, or until standard error has taken nothing for `patience`.
// Before the process ends.
void FlushLog(std::chrono::milliseconds patience = std::chrono::seconds(1));

// Lines that were dropped since the start of the process.
uint64_t DroppedLogLines();

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_LOG_LOG_H_
