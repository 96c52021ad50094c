// How a job learns that nobody wants its result any more.
#ifndef CROUT_KERNELS_STOP_REQUESTED_H_
#define CROUT_KERNELS_STOP_REQUESTED_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace crout {

// Asked between phases, and between the panels or sweeps of methods that can stop there; true ends
// the job with CANCELLED (the server turns that into the reason). Cheap, thread-safe.
using StopRequested = absl::FunctionRef<bool()>;

inline absl::Status CheckNotStopped(StopRequested stop) {
  return stop() ? absl::CancelledError("stopped between phases") : absl::OkStatus();
}

}  // namespace crout

#endif  // CROUT_KERNELS_STOP_REQUESTED_H_
