#include "server/grpc_log.h"

#include <grpc/support/log.h>

#include <string_view>

#include "grpcpp/version_info.h"
#include "server/log.h"

namespace crout {

// Later versions log through Abseil, and have nothing to set here.
#if GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR < 66

namespace {

LogLevel LevelOf(gpr_log_severity severity) {
  switch (severity) {
    case GPR_LOG_SEVERITY_DEBUG:
      return LogLevel::kDebug;
    case GPR_LOG_SEVERITY_INFO:
      return LogLevel::kInfo;
    case GPR_LOG_SEVERITY_ERROR:
      break;
  }
  return LogLevel::kWarn;  // Mostly a peer's mistake; what is ours ends calls, which say so.
}

void Forward(gpr_log_func_args* args) {
  const std::string_view file = args->file;
  Log(LevelOf(args->severity), "grpc",
      {{"source", file.substr(file.rfind('/') + 1)}, {"message", args->message}});
}

}  // namespace

void SendGrpcLogsToOurs() { gpr_set_log_function(Forward); }

#else

void SendGrpcLogsToOurs() {}

#endif

}  // namespace crout
