// What libraries would write to standard error themselves, waiting for whoever reads it.
#ifndef CROUT_SERVER_GRPC_LOG_H_
#define CROUT_SERVER_GRPC_LOG_H_

namespace crout {

// From now on gRPC's messages (those of GRPC_VERBOSITY: errors by default) are events of our log,
// and protobuf's, each about a request whose sender is told, are dropped. After ConfigureLog,
// before the first use of either.
void TakeLibraryLogs();

}  // namespace crout

#endif  // CROUT_SERVER_GRPC_LOG_H_
