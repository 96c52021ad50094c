// gRPC's own log, which it would write to standard error itself, waiting for whoever reads it.
#ifndef CROUT_SERVER_GRPC_LOG_H_
#define CROUT_SERVER_GRPC_LOG_H_

namespace crout {

// From now on gRPC's messages (those of GRPC_VERBOSITY: errors by default) are events of our log.
// After ConfigureLog, before the first use of gRPC.
void SendGrpcLogsToOurs();

}  // namespace crout

#endif  // CROUT_SERVER_GRPC_LOG_H_
