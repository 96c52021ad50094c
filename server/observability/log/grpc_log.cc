// SPDX-License-Identifier: Apache-2.0

#include "server/observability/log/grpc_log.h"

#include <grpc/support/log.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "google/protobuf/stubs/common.h"
#include "grpcpp/version_info.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/mutex.h"
#include "server/observability/log/log.h"
#if GOOGLE_PROTOBUF_VERSION < 4022000
#include "google/protobuf/stubs/logging.h"
#endif

namespace crout {
namespace {

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

void RedirectLibraryLogs() {
  RedirectGrpcLogs();
  RedirectProtobufLogs();
}

uint64_t FailedHandshakes() { return CountedHandshakes(); }

}  // namespace crout
