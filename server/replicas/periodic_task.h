// SPDX-License-Identifier: Apache-2.0

// Runs a function again and again on its own thread.
#ifndef CROUT_SERVER_REPLICAS_PERIODIC_TASK_H_
#define CROUT_SERVER_REPLICAS_PERIODIC_TASK_H_

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/mutex.h"

namespace crout {

class PeriodicTask {
 public:
  // Calls `work` from now on. A call begins `interval` after the begin of the last one, or when the
  // last one has ended. A call that runs out of memory is abandoned.
  PeriodicTask(std::chrono::milliseconds interval, std::function<void()> work)
      : interval_(interval), work_(std::move(work)), thread_([this] { Run(); }) {}
  // Waits for a running call.
  ~PeriodicTask() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      wake_.Signal();
    }
    thread_.join();
  }
  PeriodicTask(const PeriodicTask&) = delete;  // Its thread points to it.
  PeriodicTask& operator=(const PeriodicTask&) = delete;

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (true) {
      const auto next = SteadyNow() + interval_;
      AbandonOnBadAlloc(work_);
      MutexLock lock(&mutex_);
      while (!stopping_ && SteadyNow() < next) wake_.WaitUntil(&mutex_, next);
      if (stopping_) return;
    }
  }

  const std::chrono::milliseconds interval_;
  const std::function<void()> work_;
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // destroyed first
};

}  // namespace crout

#endif  // CROUT_SERVER_REPLICAS_PERIODIC_TASK_H_
