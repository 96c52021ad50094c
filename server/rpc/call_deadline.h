// SPDX-License-Identifier: Apache-2.0

// The deadline that a call's client gave.
#ifndef CROUT_SERVER_RPC_CALL_DEADLINE_H_
#define CROUT_SERVER_RPC_CALL_DEADLINE_H_

#include "grpcpp/server_context.h"
#include "server/engine/scheduling/device_scheduler.h"

namespace crout {

// Whether a call that began `seconds` ago, and that its client ends now, ends by its deadline. The
// client's clock runs out first: it began a journey earlier, and gRPC rounds up the time that it
// tells, by 1 % at most.
bool IsAboutDeadline(const grpc::ServerContextBase& context, double seconds);

// The deadline by the scheduler's clock; time_point::max() where there is none.
Job::Clock::time_point DeadlineForJob(const grpc::ServerContextBase& context);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_DEADLINE_H_
