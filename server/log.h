// The daemon's log, to standard error: events with fields, as text or one JSON object a line.
// Payloads and handles (they are capabilities) never go there.
#ifndef CROUT_SERVER_LOG_H_
#define CROUT_SERVER_LOG_H_

#include <string_view>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace crout {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Once, before the first event; events below `level` are dropped.
void ConfigureLog(LogLevel level, LogFormat format);

// `event`: lower_snake_case, fixed words. `fields`: a flat object. Thread-safe.
void Log(LogLevel level, std::string_view event,
         const nlohmann::ordered_json& fields = nlohmann::ordered_json::object());

}  // namespace crout

#endif  // CROUT_SERVER_LOG_H_
