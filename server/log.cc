#include "server/log.h"

#include <memory>
#include <string>

#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace crout {
namespace {

LogFormat g_format = LogFormat::kText;  // constant after ConfigureLog

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// Replaces bytes that are not UTF-8: fields can hold what a client sent.
std::string Dump(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// The members of an object without its braces: the time and level go before them.
std::string JsonMembers(std::string_view event, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json object = {{"event", event}};
  object.update(fields);
  const std::string text = Dump(object);
  return text.substr(1, text.size() - 2);
}

std::string Text(std::string_view event, const nlohmann::ordered_json& fields) {
  std::string line(event);
  for (const auto& [key, value] : fields.items()) {
    line.append(" ").append(key).append("=").append(Dump(value));
  }
  return line;
}

}  // namespace

void ConfigureLog(LogLevel level, LogFormat format) {
  g_format = format;
  auto logger =
      std::make_shared<spdlog::logger>("croutd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(ToSpdlog(level));
  logger->flush_on(spdlog::level::info);
  logger->set_pattern(format == LogFormat::kJson
                          ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                          : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                      spdlog::pattern_time_type::utc);
  spdlog::set_default_logger(std::move(logger));
}

void Log(LogLevel level, std::string_view event, const nlohmann::ordered_json& fields) {
  const auto spdlog_level = ToSpdlog(level);
  if (!spdlog::should_log(spdlog_level)) return;
  const std::string line =
      g_format == LogFormat::kJson ? JsonMembers(event, fields) : Text(event, fields);
  spdlog::log(spdlog_level, "{}", line);
}

}  // namespace crout
