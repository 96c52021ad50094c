// SPDX-License-Identifier: Apache-2.0

// An event for synchronization in tests.
#ifndef CROUT_TESTS_SERVER_EVENT_H_
#define CROUT_TESTS_SERVER_EVENT_H_

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"

namespace crout {

// Initially not set; once set, remains set. Wait() has no timeout. Thread-safe.
class Event {
 public:
  void Set() {
    MutexLock lock(&mutex_);
    set_ = true;
    changed_.SignalAll();
  }
  void Wait() {
    MutexLock lock(&mutex_);
    while (!set_) changed_.Wait(&mutex_);
  }
  bool IsSet() {
    MutexLock lock(&mutex_);
    return set_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace crout

#endif  // CROUT_TESTS_SERVER_EVENT_H_
