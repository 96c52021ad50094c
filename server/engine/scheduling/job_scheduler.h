// SPDX-License-Identifier: Apache-2.0

// A bounded queue of jobs whose tenants take turns, and the threads that run them.
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
#include "kernels/util/mutex.h"
#include "kernels/util/turn_queue.h"

namespace crout {

// A submitted job runs once, or Drop is called once, unless Remove took it back.
class QueuedJob {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~QueuedJob() = default;

  // Instead of running it: DEADLINE_EXCEEDED when the deadline passed in the queue (dropped then,
  // not when its turn comes), RESOURCE_EXHAUSTED when another tenant got its place (QUEUE_FULL),
  // UNAVAILABLE when the device was fenced (reason DEVICE_LOST) or the scheduler stopped
  // (DRAINING). From a thread of the scheduler or the one that stops it, no lock held; must not
  // block.
  virtual void Drop(absl::Status status) = 0;

  Clock::time_point submitted() const { return submitted_; }

  // Constant once submitted.
  Clock::time_point deadline = Clock::time_point::max();
  double predicted_seconds = 0;  // for RetryInfo and least-loaded choice
  std::string tenant;

 private:
  friend class JobScheduler;
  Clock::time_point submitted_;
};

// What DeviceScheduler and TaskScheduler have in common. Thread-safe.
class JobScheduler {
 public:
  using Clock = QueuedJob::Clock;

  struct Load {
    int streams = 0;
    int streams_busy = 0;
    size_t queue_depth = 0;
    // Predicted seconds until a job submitted now would start: 0 while a stream is idle, else what
    // is left of the running and queued jobs, spread over the streams.
    double backlog_seconds = 0;
    // Predicted seconds that are left of the running and queued jobs, spread over the streams.
    double work_seconds = 0;
  };

  virtual ~JobScheduler() = default;
  JobScheduler(const JobScheduler&) = delete;  // Its threads point to it.
  JobScheduler& operator=(const JobScheduler&) = delete;

  // Takes a job out of the queue; false if it has started, ended, or was never there. After true
  // it does not run and Drop is not called.
  bool Remove(const QueuedJob* job);

  // Jobs ahead of this one, by turns; 0 if it is not queued.
  size_t JobsAhead(const QueuedJob* job) const;

  Load load() const;

  // Refuses new jobs, drops those queued, waits for those that run.
  void Stop();

 protected:
  using Queue = TurnQueue<std::shared_ptr<QueuedJob>>;

  struct Options {
    std::string name;    // for messages: "the queue of NAME is full"
    size_t streams = 1;  // threads that run jobs, at least 1
    size_t queue_capacity = 256;
    size_t most_together = 1;       // jobs that one thread takes at once
    bool streams_are_alike = true;  // false: not every stream may take every job
    std::string_view failpoint;     // reached before jobs run; an error drops them
  };

  // What a thread has taken: one or more jobs.
  struct Taken {
    std::vector<std::shared_ptr<QueuedJob>> jobs;
    Clock::duration waited{0};  // for company, while a stream was idle
  };

  explicit JobScheduler(Options options);

  // Starts the threads: once, when the derived object is complete. Its destructor calls Stop().
  // std::system_error: there are not that many threads.
  void Start();

  // Queues a job behind those of its tenant; tenants take turns. In a full queue a tenant gets the
  // place of the last job of the tenant with the most jobs, if that has at least two more.
  // RESOURCE_EXHAUSTED (reason QUEUE_FULL, with a retry delay) when the queue is full, UNAVAILABLE
  // when stopped (DRAINING), and Refusal(); then the job was not taken. The scheduler's reference
  // to the job ends as it ran, was dropped or removed.
  absl::Status Enqueue(std::shared_ptr<QueuedJob> job);

  // Takes what stream number `stream` is to run now, by Take(). Where it takes nothing: when to
  // look again, or nothing to wait until something changes.
  virtual std::optional<Clock::time_point> Choose(size_t stream, Taken& taken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Runs what was taken.
  virtual void Run(size_t stream, Taken& taken) = 0;
  // An error, if no job may run any more.
  virtual absl::Status Refusal() const { return absl::OkStatus(); }

  // Takes a job as its tenant's turn.
  void Take(Queue::Position position, Taken& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

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
  void RunOrDrop(size_t stream, Taken& taken);
  // Waits for jobs, takes them and marks the stream busy; false when stopping.
  bool Next(size_t stream, Taken& taken) ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops jobs as their deadlines pass, and displaced ones, however busy the other threads are.
  void Reap();
  // Without a job when stopping.
  Dropped WaitForDropped() ABSL_LOCKS_EXCLUDED(mutex_);
  void WakeStream();

  // Of a job that leaves the queue.
  void Forget(const QueuedJob& job) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<QueuedJob> TakeOut(Queue::Position position) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FullStatus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double BacklogSeconds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double WorkSeconds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Statuses of dropped jobs, made while there is memory for them.
  const absl::Status late_;
  const absl::Status displaced_status_;

  CondVar work_;
  CondVar reap_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<const QueuedJob*, Queue::Position> positions_ ABSL_GUARDED_BY(mutex_);
  // Of the queued jobs that have one.
  Deadlines deadlines_ ABSL_GUARDED_BY(mutex_);
  // Jobs that lost their places and are still to be dropped.
  std::list<std::shared_ptr<QueuedJob>> displaced_ ABSL_GUARDED_BY(mutex_);
  // The reaper looks again at this time without being woken.
  Clock::time_point reap_at_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();
  double queued_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Stream> streams_ ABSL_GUARDED_BY(mutex_);

  Mutex join_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SCHEDULING_JOB_SCHEDULER_H_
