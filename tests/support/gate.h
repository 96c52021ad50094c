// SPDX-License-Identifier: Apache-2.0

// Holds threads at a point chosen by a test.
#ifndef CROUT_TESTS_SUPPORT_GATE_H_
#define CROUT_TESTS_SUPPORT_GATE_H_

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"

namespace crout::testing {

// Initially open. Thread-safe.
class Gate {
 public:
  void Close();
  void Open();

  // Returns once the gate is open. Called by the threads to hold.
  void Pass();

  // Blocks until `count` threads are held at the gate.
  void WaitUntilHeld(int count = 1);

  // Number of threads held now.
  int held() const;

  // Number of threads that have reached the gate so far.
  int arrivals() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int held_ ABSL_GUARDED_BY(mutex_) = 0;
  int arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_GATE_H_
