// SPDX-License-Identifier: Apache-2.0

#include "server/engine/scheduling/task_scheduler.h"

#include "kernels/util/allocation.h"

namespace crout {

TaskScheduler::TaskScheduler(const Options& options)
    : JobScheduler({.name = options.name,
                    .streams = 1 + options.threads,
                    .queue_capacity = options.capacity,
                    .streams_are_alike = false,
                    .failpoint = "scheduler.task"}) {
  Start();
}

TaskScheduler::~TaskScheduler() { Stop(); }

std::optional<TaskScheduler::Clock::time_point> TaskScheduler::Choose(size_t stream,
                                                                      DequeuedJobs& dequeued) {
  const auto task =
      queue_.Find([&](const std::shared_ptr<QueuedJob>& job) { return MayRun(stream, *job); });
  if (task) Dequeue(*task, dequeued);
  return std::nullopt;
}

bool TaskScheduler::MayRun(size_t stream, const QueuedJob& job) const {
  return stream != kSmallStream || static_cast<const Task&>(job).is_small;
}

void TaskScheduler::Run(size_t /*stream*/, DequeuedJobs& dequeued) {
  AbandonOnBadAlloc([&] { static_cast<Task&>(*dequeued.jobs.front()).Run(); });
}

}  // namespace crout
