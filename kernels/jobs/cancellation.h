// Ends a job between its phases.
#ifndef CROUT_KERNELS_JOBS_CANCELLATION_H_
#define CROUT_KERNELS_JOBS_CANCELLATION_H_

#include "absl/status/status.h"
#include "kernels/stop_requested.h"

namespace crout {

inline absl::Status CheckNotStopped(StopRequested stop) {
  return stop() ? absl::CancelledError("stopped between phases") : absl::OkStatus();
}

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_CANCELLATION_H_
