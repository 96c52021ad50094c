// SPDX-License-Identifier: Apache-2.0

#include "server/memory_return.h"

namespace crout {

void MemoryReturn::Observe(const Activity& activity, TimePoint now) {
  if (activity != last_) {
    last_ = activity;
    since_ = now;
    done_ = false;
  }
  const bool idle = activity.in_flight == 0 && activity.jobs == 0;
  if (done_ || !idle || absl::FromChrono(now - since_) < after_) return;
  done_ = true;
  return_memory_();
}

}  // namespace crout
