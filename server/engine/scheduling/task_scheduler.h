// SPDX-License-Identifier: Apache-2.0

// Runs the parts of calls that need no context of a device and may block.
#ifndef CROUT_SERVER_ENGINE_SCHEDULING_TASK_SCHEDULER_H_
#define CROUT_SERVER_ENGINE_SCHEDULING_TASK_SCHEDULER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/engine/scheduling/job_scheduler.h"

namespace crout {

class Task : public QueuedJob {
 public:
  // On a thread of the scheduler.
  virtual void Run() = 0;

  // Constant once submitted: whether it takes no longer than a fraction of a second at worst.
  bool is_small = false;
};

// Tenants take turns. One thread is for small tasks alone, so that they do not wait for large ones;
// the others run any. Thread-safe.
class TaskScheduler final : public JobScheduler {
 public:
  struct Options {
    std::string name;       // for messages: "the queue of NAME is full"
    size_t threads = 1;     // for any task, beside the one for small tasks
    size_t capacity = 256;  // of the queue
  };

  explicit TaskScheduler(const Options& options);
  ~TaskScheduler() override;  // Stop()

  // As Enqueue.
  absl::Status Submit(std::shared_ptr<Task> task) { return Enqueue(std::move(task)); }

 private:
  std::optional<Clock::time_point> Choose(size_t stream, Taken& taken) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(size_t stream, Taken& taken) override;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SCHEDULING_TASK_SCHEDULER_H_
