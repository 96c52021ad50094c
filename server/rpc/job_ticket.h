// SPDX-License-Identifier: Apache-2.0

// A call's job or task in a queue, and the work done for the call.
#ifndef CROUT_SERVER_RPC_JOB_TICKET_H_
#define CROUT_SERVER_RPC_JOB_TICKET_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "kernels/util/status_macros.h"
#include "server/engine/scheduling/job_scheduler.h"

namespace crout {

// Not thread-safe. Work is whatever is done outside of reactions, the job's among it: several
// pieces may overlap, for a job can start before the task that queued it ends.
class JobTicket {
 public:
  using Clock = QueuedJob::Clock;

  // Queues a job, while none is queued; the statuses of the scheduler's Submit.
  template <class Scheduler, class QueuedJobType>
  absl::Status Submit(Scheduler& scheduler, std::shared_ptr<QueuedJobType> job) {
    CROUT_RETURN_IF_ERROR(scheduler.Submit(job));
    scheduler_ = &scheduler;
    job_ = std::move(job);
    return absl::OkStatus();
  }
  // The job has left the queue: it runs, or was dropped. A job refers to its call, which has the
  // ticket; this breaks the cycle.
  void Redeem() { job_.reset(); }
  // Jobs ahead of it; 0 if it is not queued.
  size_t JobsAhead() const { return job_ == nullptr ? 0 : scheduler_->JobsAhead(job_.get()); }

  void BeginWork() { ++working_; }
  // Seconds that have been worked for nobody, once the last piece is over; else 0.
  double EndWork(Clock::time_point now);
  bool working() const { return working_ > 0; }

  // Nobody wants the work: takes the job back, if it is still queued; what goes on is for nobody.
  void Abandon(Clock::time_point now);

 private:
  JobScheduler* scheduler_ = nullptr;
  std::shared_ptr<QueuedJob> job_;  // while it is queued
  int working_ = 0;
  std::optional<Clock::time_point> wasting_since_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_JOB_TICKET_H_
