// Holds threads at a point that a test chooses.
#ifndef CROUT_TESTS_SUPPORT_GATE_H_
#define CROUT_TESTS_SUPPORT_GATE_H_

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"

namespace crout::testing {

// Open at first. Thread-safe.
class Gate {
 public:
  void Close();
  void Open();

  // Called where threads are to be held: returns once the gate is open.
  void Pass();

  // Blocks until `count` threads are held at the gate.
  void WaitUntilHeld(int count = 1);

  // Threads held now.
  int held() const;

  // Threads that ever came to the gate.
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
