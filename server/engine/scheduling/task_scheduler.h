// SPDX-License-Identifier: Apache-2.0

// Runs tasks: parts of calls that may block and need no stream of a device.
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
  // Called on a thread of the scheduler.
  virtual void Run() = 0;

  // Constant once submitted. True if the task takes at most a fraction of a second.
  bool is_small = false;
};

// Properties of a task that are known before it runs.
struct TaskSize {
  double predicted_seconds = 0;  // see QueuedJob::predicted_seconds
  bool is_small = false;         // see Task::is_small
};

// Runs tasks on a fixed set of threads. One thread runs only small tasks, so
// that these do not wait for large ones. The other threads run all tasks. Thread-safe.
class TaskScheduler final : public JobScheduler {
 public:
  struct Options {
    std::string name;       // for messages: "the queue of NAME is full"
    size_t threads = 1;     // for all tasks, in addition to the thread for small tasks
    size_t capacity = 256;  // most queued tasks
  };

  explicit TaskScheduler(const Options& options);
  ~TaskScheduler() override;  // Stop()

  // Queues a task; see Enqueue.
  absl::Status Submit(std::shared_ptr<Task> task) { return Enqueue(std::move(task)); }

 private:
  std::optional<Clock::time_point> Choose(size_t stream, DequeuedJobs& dequeued) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRun(size_t stream, const QueuedJob& job) const override;
  void Run(size_t stream, DequeuedJobs& dequeued) override;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SCHEDULING_TASK_SCHEDULER_H_
