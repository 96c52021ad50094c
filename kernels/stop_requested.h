// SPDX-License-Identifier: Apache-2.0

// Cancellation of a running job.
#ifndef CROUT_KERNELS_STOP_REQUESTED_H_
#define CROUT_KERNELS_STOP_REQUESTED_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace crout {

// Polled between phases, and between the panels or sweeps of stoppable methods. If it returns true,
// the job ends with CANCELLED, which the server replaces by the actual reason. Must be cheap and
// thread-safe.
using StopRequested = absl::FunctionRef<bool()>;

inline absl::Status CheckNotStopped(StopRequested stop) {
  return stop() ? absl::CancelledError("the job was stopped") : absl::OkStatus();
}

}  // namespace crout

#endif  // CROUT_KERNELS_STOP_REQUESTED_H_
