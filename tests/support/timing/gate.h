// SPDX-License-Identifier: Apache-2.0

// A gate that holds threads at a point of a test's choice.
#ifndef CROUT_TESTS_SUPPORT_TIMING_GATE_H_
#define CROUT_TESTS_SUPPORT_TIMING_GATE_H_

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

  // Blocks until at least `count` threads are held, without a timeout.
  void WaitUntilHeld(int count = 1);

  // Number of threads held now.
  int held() const;

  // Number of calls of Pass so far.
  int arrivals() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int held_ ABSL_GUARDED_BY(mutex_) = 0;
  int arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_TIMING_GATE_H_
