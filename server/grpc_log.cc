#include "server/grpc_log.h"

#include <grpc/support/log.h>

#include <string_view>

#include "google/protobuf/stubs/common.h"
#include "grpcpp/version_info.h"
#include "kernels/util/allocation.h"
#include "server/log.h"
#if GOOGLE_PROTOBUF_VERSION < 4022000
#include "google/protobuf/stubs/logging.h"
#endif

namespace crout {
namespace {

// Later versions of both log through Abseil, and have nothing to set here.
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
  return LogLevel::kWarn;  // Mostly a peer's mistake; what is ours ends calls, which say so.
}

void Forward(gpr_log_func_args* args) {
  const std::string_view file = args->file;
  GoOnWithoutMemory([&] {
    Log(LevelOf(args->severity), "grpc",
        {{"source", file.substr(file.rfind('/') + 1)}, {"message", args->message}});
  });
}

void TakeGrpcLogs() { gpr_set_log_function(Forward); }

#else

void TakeGrpcLogs() {}

#endif

void TakeProtobufLogs() {
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::SetLogHandler(nullptr);
#endif
}

}  // namespace

void TakeLibraryLogs() {
  TakeGrpcLogs();
  TakeProtobufLogs();
}

}  // namespace crout
