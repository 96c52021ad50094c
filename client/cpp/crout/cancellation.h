// SPDX-License-Identifier: Apache-2.0

// Cancels calls from another thread.
#ifndef CROUT_CROUT_CANCELLATION_H_
#define CROUT_CROUT_CANCELLATION_H_

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace crout {
inline namespace api {

namespace internal {
class CallScope;
}

// Cancels every present and future call whose CallOptions refer to this object. Such calls end with
// CANCELLED. Thread-safe; must outlive the calls. (Uses absl::Mutex, not crout::Mutex of kernels/:
// the client does not depend on the kernels, and no TSan run covers code above gRPC.)
class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;  // Calls hold its address.
  Cancellation& operator=(const Cancellation&) = delete;

  // Cannot be undone.
  void Cancel();
  bool cancelled() const;

  // Sleeps for `duration` or until Cancel(). Returns cancelled().
  bool WaitFor(absl::Duration duration) const;

 private:
  friend class internal::CallScope;
  void Attach(internal::CallScope* call);
  void Detach(internal::CallScope* call);

  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<internal::CallScope*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_CANCELLATION_H_
