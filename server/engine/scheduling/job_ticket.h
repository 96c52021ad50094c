// SPDX-License-Identifier: Apache-2.0

// Tracks a call's queued job and the work that runs for the call.
#ifndef CROUT_SERVER_ENGINE_SCHEDULING_JOB_TICKET_H_
#define CROUT_SERVER_ENGINE_SCHEDULING_JOB_TICKET_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "kernels/util/status_macros.h"
#include "server/engine/scheduling/job_scheduler.h"

namespace crout {

// Not thread-safe. Work is everything that runs outside the threads of the transport, including the
// job. Pieces of work may overlap, because a job can start before the task that queued it ends.
class JobTicket {
 public:
  using Clock = QueuedJob::Clock;

  // Queues a job. Requires that no job is queued. Returns the status of the scheduler's Submit().
  template <class Scheduler, class QueuedJobType>
  absl::Status Submit(Scheduler& scheduler, std::shared_ptr<QueuedJobType> job) {
    CROUT_RETURN_IF_ERROR(scheduler.Submit(job));
    scheduler_ = &scheduler;
    job_ = std::move(job);
    return absl::OkStatus();
  }
  // Releases the job after it has left the queue, because it runs or was dropped. The job refers to
  // its call, which owns the ticket: releasing it breaks the cycle.
  void ReleaseJob() { job_.reset(); }
  // Number of jobs ahead of the queued job; 0 if none is queued.
  size_t JobsAhead() const { return job_ == nullptr ? 0 : scheduler_->JobsAhead(job_.get()); }

  void BeginWork() { ++working_; }
  // Ends one piece of work. If this was the last piece and the work was abandoned, returns the
  // seconds since Abandon(); else returns 0.
  double EndWork(Clock::time_point now);
  bool working() const { return working_ > 0; }

  // Marks the work as wasted, because its result will not be used. Removes the job if it is still
  // queued; work that is running counts as wasted from `now` on.
  void Abandon(Clock::time_point now);

 private:
  JobScheduler* scheduler_ = nullptr;
  std::shared_ptr<QueuedJob> job_;  // null while no job is queued
  int working_ = 0;
  std::optional<Clock::time_point> wasting_since_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SCHEDULING_JOB_TICKET_H_
