// SPDX-License-Identifier: Apache-2.0

// A bounded queue of jobs, which gives tenants equal time, and the threads that run the jobs.
#ifndef CROUT_SERVER_ENGINE_SCHEDULING_JOB_SCHEDULER_H_
#define CROUT_SERVER_ENGINE_SCHEDULING_JOB_SCHEDULER_H_

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/util/fair_queue.h"
#include "kernels/util/mutex.h"
#include "kernels/util/status_macros.h"
#include "server/engine/quotas/quotas.h"
#include "server/engine/quotas/tenant_totals.h"

namespace crout {

// A job for a JobScheduler. After a successful submission, exactly one of three things happens: the
// job runs once, Drop is called once, or Remove returns true.
class QueuedJob {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~QueuedJob() = default;

  // Called in place of running the job. `status` is the reason:
  // - DEADLINE_EXCEEDED: the deadline passed in the queue. The call comes when the deadline passes,
  //   without waiting for the job's turn.
  // - RESOURCE_EXHAUSTED (reason QUEUE_FULL): another tenant took the job's place in a full queue.
  // - UNAVAILABLE (reason DEVICE_LOST): the device was fenced.
  // - UNAVAILABLE (reason DRAINING): the scheduler stopped.
  // Called by a thread of the scheduler or by the thread in Stop(), without locks. Must not block.
  virtual void Drop(absl::Status status) = 0;

  Clock::time_point submitted() const { return submitted_; }

  // Constant once submitted.
  Clock::time_point deadline = Clock::time_point::max();
  double predicted_seconds = 0;  // for the order of jobs, retry delays and the choice of a device
  std::string tenant;
  QueuePriority priority = QueuePriority::kNormal;  // among the jobs of the tenant

 private:
  friend class JobScheduler;
  Clock::time_point submitted_;
};

// Base class of DeviceScheduler and TaskScheduler. Thread-safe.
//
// Tenants get equal parts of the time of the streams (FairQueue). A job costs its tenant its
// predicted seconds when it is dequeued, and its measured seconds instead when it ends. A tenant
// with short jobs therefore waits at most for the jobs that run, not for the queued long jobs of
// another tenant, until it has used as much time. Jobs in a batch share its measured seconds in
// proportion to their predictions. The priorities of a tenant divide its part of the time.
class JobScheduler {
 public:
  using Clock = QueuedJob::Clock;

  struct Load {
    int streams = 0;
    int streams_busy = 0;
    size_t queue_depth = 0;
    // Predicted seconds until a job submitted now starts: 0 if a stream is idle and the queue is
    // empty, otherwise `work_seconds`.
    double backlog_seconds = 0;
    // Predicted remaining seconds of all running and queued jobs, divided by the number of streams.
    double work_seconds = 0;
  };

  virtual ~JobScheduler() = default;
  JobScheduler(const JobScheduler&) = delete;  // Its threads point to it.
  JobScheduler& operator=(const JobScheduler&) = delete;

  // Removes a job from the queue. Returns false if the job is not queued, for example because it
  // has started. After true the job does not run, and Drop is not called.
  bool Remove(const QueuedJob* job);

  // Returns the number of queued jobs whose turn comes before this job's; 0 if it is not queued.
  size_t JobsAhead(const QueuedJob* job) const;

  // Returns the error with which the scheduler would refuse a job of this tenant now, because there
  // is no room for it. A caller that checks before it prepares a job wastes less work on a job that
  // is then refused. Room is not reserved: the later submission may still fail.
  absl::Status CheckRoom(const std::string& tenant) const;

  Load load() const;
  struct TenantJobs {
    size_t queued = 0;
    size_t running = 0;
    double seconds = 0;  // stream seconds used by ended jobs (TenantTotals)
  };
  TenantJobs JobsOf(std::string_view tenant) const;
  // Returns the seconds of streams that ended jobs of all tenants have used.
  double used_seconds() const;

  // Refuses new jobs, drops the queued jobs, and waits for the running jobs.
  void Stop();

 protected:
  using Queue = FairQueue<std::shared_ptr<QueuedJob>>;

  // The stream that runs only small jobs, if not all streams are alike.
  static constexpr size_t kSmallStream = 0;

  struct Options {
    std::string name;    // for messages: "the queue of NAME is full"
    size_t streams = 1;  // threads that run jobs, at least 1
    size_t queue_capacity = 256;
    size_t max_batch_jobs = 1;      // largest number of jobs that Choose() dequeues
    bool streams_are_alike = true;  // false: kSmallStream may not run every job
    std::string_view failpoint;     // evaluated before jobs run; an error drops them
    // Limits queued and running jobs of tenants, and is charged their seconds; null: no quotas.
    Quotas* quotas = nullptr;
  };

  // Jobs that a thread has dequeued to run them.
  struct DequeuedJobs {
    struct Charge {
      Queue::TenantRef tenant;
      QueuePriority priority;
      double seconds;
    };
    std::vector<std::shared_ptr<QueuedJob>> jobs;
    std::vector<Charge> charges;  // seconds charged to the tenants of the jobs
    Clock::duration waited{0};    // time an idle stream held jobs back to fill a batch
  };

  explicit JobScheduler(Options options);

  // Starts the threads. A derived class calls it once, when its object is complete, and calls
  // Stop() in its destructor. Throws std::system_error if the system refuses a thread.
  void Start();

  // Queues a job behind the other jobs of its tenant and priority. If the queue is full, the job
  // displaces the last job, of the lowest priority, of the tenant with the most jobs, provided that
  // this tenant has at least two jobs more than the job's own tenant. Otherwise the job is refused.
  // The scheduler releases its reference to the job after the job has run, or was dropped or
  // removed.
  //
  // RESOURCE_EXHAUSTED (reason QUEUE_FULL, with a retry delay): the queue is full; reason
  // QUOTA_EXCEEDED, with a retry delay: the tenant has too many queued jobs. UNAVAILABLE (reason
  // DRAINING): the scheduler is stopped. An error of Refusal() is returned as it is. After
  // an error the job is not queued, and Drop is not called.
  absl::Status Enqueue(std::shared_ptr<QueuedJob> job);

  // Chooses the jobs that `stream` runs next and calls Dequeue() for each. If there are none,
  // returns the time at which the stream calls again, or nothing if it waits for a signal.
  virtual std::optional<Clock::time_point> Choose(size_t stream, DequeuedJobs& dequeued)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Returns false if `stream` is reserved for small jobs and the job is not small.
  virtual bool MayRun(size_t stream, const QueuedJob& job) const = 0;
  // Returns false if a stream already waits to run this queued job, so that no signal is needed.
  virtual bool NeedsSignal(const QueuedJob& /*job*/) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return true;
  }
  // Runs the jobs in `dequeued`, which has at least one.
  virtual void Run(size_t stream, DequeuedJobs& dequeued) = 0;
  // Returns an error if no job may run any more.
  virtual absl::Status Refusal() const { return absl::OkStatus(); }

  // Moves a job from the queue to `dequeued`, and charges its tenant.
  void Dequeue(Queue::Position position, DequeuedJobs& dequeued)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  Queue queue_ ABSL_GUARDED_BY(mutex_);
  int streams_busy_ ABSL_GUARDED_BY(mutex_) = 0;

 private:
  using Deadlines = std::set<std::pair<Clock::time_point, const QueuedJob*>>;

  struct Stream {
    bool busy = false;
    Clock::time_point start;
    double predicted_seconds = 0;
  };
  struct Dropped {
    std::shared_ptr<QueuedJob> job;
    absl::Status status;
  };

  void Work(size_t stream);
  // Runs the jobs, except for those that must be dropped.
  void RunOrDrop(size_t stream, DequeuedJobs& dequeued);
  // Waits for jobs, dequeues them and marks the stream as busy. Returns false when stopping.
  bool Next(size_t stream, DequeuedJobs& dequeued) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if a job is queued that only other streams may run.
  bool HasJobsForOthers(size_t stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops displaced jobs, and jobs whose deadlines pass. Runs on its own thread, so that busy
  // streams do not delay it.
  void Reap();
  // Returns the next job to drop, or a null job when stopping.
  Dropped WaitForDropped() ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces the charges of jobs that have run on `stream` by their measured seconds.
  void CorrectCharges(size_t stream, DequeuedJobs& dequeued) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Removes a job that left the queue from the indexes and the sum of seconds.
  void RemoveFromIndexes(const QueuedJob& job) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes a job from the queue and the indexes. Charges its tenant nothing.
  std::shared_ptr<QueuedJob> RemoveFromQueue(Queue::Position position) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  QuotaLimits LimitsOf(const std::string& tenant) const;
  // Finds room for a job of this tenant. Returns the job that it displaces, or nothing if a place
  // is free. The errors are those of Enqueue().
  absl::StatusOr<std::optional<Queue::Position>> FindRoom(const std::string& tenant,
                                                          const QuotaLimits& limits) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FullStatus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckQueued(const std::string& tenant, int64_t limit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double BacklogSeconds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double WorkSeconds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Statuses of dropped jobs, built at construction so that dropping a job allocates no memory.
  const absl::Status deadline_status_;
  const absl::Status displaced_status_;

  // Wakes a stream for each queued job that needs a signal. The stream for small jobs passes on
  // signals for other jobs.
  CondVar work_;
  CondVar reap_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<const QueuedJob*, Queue::Position> positions_ ABSL_GUARDED_BY(mutex_);
  // Deadlines of the queued jobs that have one.
  Deadlines deadlines_ ABSL_GUARDED_BY(mutex_);
  // Jobs that were displaced from the queue and are not dropped yet.
  std::list<std::shared_ptr<QueuedJob>> displaced_ ABSL_GUARDED_BY(mutex_);
  // Time at which Reap() next wakes without a signal.
  Clock::time_point reap_at_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();
  double queued_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  TenantTotals used_seconds_ ABSL_GUARDED_BY(mutex_);
  std::vector<Stream> streams_ ABSL_GUARDED_BY(mutex_);

  Mutex join_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(join_mutex_);
};

// The job of a call, and the count of the call's work in progress. Work is everything that runs
// outside the threads of the transport: the job and tasks. Pieces of work may overlap, because a
// job can start before the task that queued it ends. Not thread-safe.
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
  // Releases the reference to a job that has left the queue, because it runs or was dropped. This
  // breaks a cycle: the job refers to its call, and the call owns the ticket.
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

#endif  // CROUT_SERVER_ENGINE_SCHEDULING_JOB_SCHEDULER_H_
