// SPDX-License-Identifier: Apache-2.0

// The deadline of a call, as set by its client.
#ifndef CROUT_SERVER_RPC_STREAM_CALL_DEADLINE_H_
#define CROUT_SERVER_RPC_STREAM_CALL_DEADLINE_H_

#include "grpcpp/server_context.h"
#include "server/engine/scheduling/device_scheduler.h"

namespace crout {

// Whether a call ends because of its deadline. The call began `seconds` ago and its client ends it
// now. The client's clock reaches the deadline before the server's: it started earlier by the
// network delay, and gRPC rounds up the timeout that it sends, by at most 1 %.
bool IsAboutDeadline(const grpc::ServerContextBase& context, double seconds);

// The deadline on the scheduler's clock, or time_point::max() if the client set none.
Job::Clock::time_point DeadlineForJob(const grpc::ServerContextBase& context);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_STREAM_CALL_DEADLINE_H_
