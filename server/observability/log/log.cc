// SPDX-License-Identifier: Apache-2.0

#include "server/observability/log/log.h"

#include <grpc/support/log.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "google/protobuf/stubs/common.h"
#include "google/protobuf/stubs/logging.h"
#include "grpcpp/version_info.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/mutex.h"
#include "server/observability/log/log_writer.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"

#if GOOGLE_PROTOBUF_VERSION < 4022000
#endif

namespace crout {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

// Constant after ConfigureLog.
LogFormat g_format = LogFormat::kText;
LogWriter* g_writer = nullptr;

class WriterSink final : public spdlog::sinks::base_sink<std::mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    g_writer->Push({line.data(), line.size()});
  }
  void flush_() override {}
};

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

// Replaces bytes that are not UTF-8: fields can contain text from clients.
std::string Dump(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

// Returns the members of the object without its braces. The sink writes the time and level before
// them.
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

void Write(LogLevel level, std::string_view event, const nlohmann::ordered_json& fields) {
  spdlog::log(ToSpdlog(level), "{}",
              g_format == LogFormat::kJson ? JsonMembers(event, fields) : Text(event, fields));
}

// Later versions of gRPC log through Abseil and need no redirection.
#if GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR < 66

LogLevel LevelOf(gpr_log_severity severity) {
  switch (severity) {
    case GPR_LOG_SEVERITY_DEBUG:
      return LogLevel::kDebug;
    case GPR_LOG_SEVERITY_INFO:
      return LogLevel::kInfo;
    case GPR_LOG_SEVERITY_ERROR:
      break;
  }
  return LogLevel::kWarn;  // usually an error of a peer; calls report the server's own errors
}

constexpr int kLinesPerSecond = 10;
std::atomic<uint64_t> failed_handshakes = 0;

// Returns nothing if kLinesPerSecond lines were logged in this second. Otherwise returns the number
// of lines skipped since the last logged line.
std::optional<int> AdmitLine() {
  static Mutex mutex;
  static auto second = SteadyNow();
  static int lines = 0;
  static int skipped = 0;
  MutexLock lock(&mutex);
  if (const auto now = SteadyNow(); now - second >= std::chrono::seconds(1)) {
    second = now;
    lines = 0;
  }
  if (lines++ < kLinesPerSecond) return std::exchange(skipped, 0);
  ++skipped;
  return std::nullopt;
}

void Forward(gpr_log_func_args* args) {
  const std::string_view file = args->file;
  const std::string_view message = args->message;
  if (message.starts_with("Handshake failed")) ++failed_handshakes;
  const std::optional<int> skipped = AdmitLine();
  if (!skipped) return;
  AbandonOnBadAlloc([&] {
    nlohmann::ordered_json fields = {{"source", file.substr(file.rfind('/') + 1)},
                                     {"message", message}};
    if (*skipped > 0) fields["skipped"] = *skipped;
    Log(LevelOf(args->severity), "grpc", fields);
  });
}

void RedirectGrpcLogs() { gpr_set_log_function(Forward); }
uint64_t CountedHandshakes() { return failed_handshakes; }

#else

void RedirectGrpcLogs() {}
uint64_t CountedHandshakes() { return 0; }

#endif

void RedirectProtobufLogs() {
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::SetLogHandler(nullptr);
#endif
}

}  // namespace

void ConfigureLog(LogLevel level, LogFormat format) {
  g_format = format;
  g_writer = LogWriter::Start(STDERR_FILENO, kBufferBytes);
  auto logger = std::make_shared<spdlog::logger>("croutd", std::make_shared<WriterSink>());
  logger->set_level(ToSpdlog(level));
  logger->set_pattern(format == LogFormat::kJson
                          ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                          : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                      spdlog::pattern_time_type::utc);
  spdlog::set_default_logger(std::move(logger));
}

void Log(LogLevel level, std::string_view event, const nlohmann::ordered_json& fields) {
  if (!spdlog::should_log(ToSpdlog(level))) return;
  if (const uint64_t lost = g_writer == nullptr ? 0 : g_writer->TakeUnreported(); lost > 0) {
    Write(LogLevel::kWarn, "log_dropped", {{"lines", lost}});
  }
  Write(level, event, fields);
}

void FlushLog(std::chrono::milliseconds timeout) {
  if (g_writer != nullptr) g_writer->Flush(timeout);
}

uint64_t DroppedLogLines() { return g_writer == nullptr ? 0 : g_writer->dropped(); }

void RedirectLibraryLogs() {
  RedirectGrpcLogs();
  RedirectProtobufLogs();
}

uint64_t FailedHandshakes() { return CountedHandshakes(); }

}  // namespace crout
