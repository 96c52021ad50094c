// A bounded queue of jobs for one device, and the workers that run them.
#ifndef CROUT_SERVER_SCHEDULING_DEVICE_SCHEDULER_H_
#define CROUT_SERVER_SCHEDULING_DEVICE_SCHEDULER_H_

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/util/mutex.h"

namespace crout {

class JobGatherer;

// Exactly one of Run and Drop is called on a submitted job, once, unless Remove took it back; or
// its gatherer runs it.
class Job {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Job() = default;

  // On a worker thread, with a context that nothing else uses until it returns.
  virtual void Run(ExecutionContext& context) = 0;

  // Instead of Run: DEADLINE_EXCEEDED when the deadline passed in the queue (dropped then, not when
  // its turn comes), UNAVAILABLE when the device was fenced (reason DEVICE_LOST) or the scheduler
  // stopped (DRAINING). From a thread of the scheduler or the one that stops it, no lock held; must
  // not block.
  virtual void Drop(absl::Status status) = 0;

  // Constant once submitted.
  Clock::time_point deadline = Clock::time_point::max();
  double predicted_seconds = 0;  // cost model; for RetryInfo and least-loaded choice
  // Set: the gatherer runs the job, together with others of the same gatherer and group that are
  // queued when its turn comes. Tenants take turns where those are too many.
  JobGatherer* gatherer = nullptr;
  int group = 0;
  std::string tenant;

 private:
  friend class DeviceScheduler;
  Clock::time_point submitted_;
};

// Runs jobs together. Thread-safe; outlives them.
class JobGatherer {
 public:
  virtual ~JobGatherer() = default;

  // In place of Job::Run, for each of them once: one or more, of one group, in the order in which
  // they were submitted if one tenant's. `waited`: how long a stream was there and they waited for
  // company.
  virtual void Run(ExecutionContext& context, std::span<const std::shared_ptr<Job>> jobs,
                   Job::Clock::duration waited) = 0;
};

struct SchedulerOptions {
  // Contexts, each with its worker thread, made at start; 0: the device's parallelism.
  int streams = 0;
  size_t queue_capacity = 256;
  // Most jobs that a gatherer gets at once. At least 1.
  size_t gather_jobs = 1;
  // For so long from its submission a job waits for company, while another stream runs; not where
  // none does.
  std::chrono::microseconds gather_window{0};
};

// Thread-safe.
class DeviceScheduler {
 public:
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

  // Makes `options.streams` contexts; the first error ends it.
  static absl::StatusOr<std::unique_ptr<DeviceScheduler>> Create(Device* device,
                                                                 const SchedulerOptions& options);
  ~DeviceScheduler();                                // Stop()
  DeviceScheduler(const DeviceScheduler&) = delete;  // Its threads point to it.
  DeviceScheduler& operator=(const DeviceScheduler&) = delete;

  // FIFO. RESOURCE_EXHAUSTED (reason QUEUE_FULL, with a retry delay) when the queue is full,
  // UNAVAILABLE when stopped (DRAINING) or the device is fenced (DEVICE_LOST); then the job was not
  // taken. The scheduler's reference to the job ends with Run, Drop or Remove.
  absl::Status Submit(std::shared_ptr<Job> job);

  // Takes a job out of the queue; false if it has started, ended, or was never there. After true
  // neither Run nor Drop is called.
  bool Remove(const Job* job);

  // Jobs ahead of this one; 0 if it is not queued.
  size_t JobsAhead(const Job* job) const;

  Load load() const;
  Device& device() const { return *device_; }

  // Refuses new jobs, drops those queued, waits for those that run.
  void Stop();

 private:
  using Queue = std::list<std::shared_ptr<Job>>;
  using Deadlines = std::set<std::pair<Job::Clock::time_point, const Job*>>;

  // What a stream is doing.
  struct Stream {
    bool busy = false;
    Job::Clock::time_point start;
    double predicted_seconds = 0;
  };

  // What a worker has taken: one job, or several of one gatherer.
  struct Taken {
    std::vector<std::shared_ptr<Job>> jobs;
    Job::Clock::duration waited{0};  // for company
  };
  // A job that could be taken, and how many of its tenant come before it.
  struct Candidate {
    size_t turn;
    size_t place;  // in the queue
    Queue::iterator position;
  };

  DeviceScheduler(Device* device, const SchedulerOptions& options,
                  std::vector<std::unique_ptr<ExecutionContext>> contexts);

  void Work(size_t stream);
  void RunOrDrop(Taken& taken, ExecutionContext& context);
  // The status with which it is to be dropped, if it is.
  const absl::Status* ReasonToDrop(const Job& job) const;
  // Waits for a job, takes it, and what is gathered with it, and marks the stream busy; false when
  // stopping.
  bool Next(size_t stream, Taken& taken) ABSL_LOCKS_EXCLUDED(mutex_);
  // The job to start now: the first that does not wait for company; end() if there is none.
  Queue::iterator Startable(Job::Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AwaitsCompany(const Job& job, Job::Clock::time_point now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the job, and others with it.
  void TakeTogether(Queue::iterator first, Taken& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops jobs as their deadlines pass, however busy the workers are.
  void Reap();
  // nullptr when stopping.
  std::shared_ptr<Job> WaitForLate() ABSL_LOCKS_EXCLUDED(mutex_);

  std::shared_ptr<Job> Take(Queue::iterator position) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double BacklogSeconds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double WorkSeconds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction; each context is its worker's own.
  Device* const device_;
  const size_t queue_capacity_;
  const size_t gather_jobs_;
  const std::chrono::microseconds gather_window_;
  // What dropped jobs are told, made while there is memory for it.
  const absl::Status late_;
  const absl::Status fenced_;
  const std::vector<std::unique_ptr<ExecutionContext>> contexts_;

  mutable Mutex mutex_;
  CondVar work_;
  CondVar reap_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Queue queue_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<const Job*, Queue::iterator> positions_ ABSL_GUARDED_BY(mutex_);
  // Of the queued jobs that have one.
  Deadlines deadlines_ ABSL_GUARDED_BY(mutex_);
  // The reaper looks again at this time without being woken.
  Job::Clock::time_point reap_at_ ABSL_GUARDED_BY(mutex_) = Job::Clock::time_point::max();
  double queued_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  // Since when a stream has let jobs wait for company.
  std::optional<Job::Clock::time_point> awaiting_since_ ABSL_GUARDED_BY(mutex_);
  // For TakeTogether(), with room for the whole queue: it takes no memory.
  std::vector<Candidate> candidates_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<const std::string*, size_t>> turns_ ABSL_GUARDED_BY(mutex_);
  std::vector<Stream> streams_ ABSL_GUARDED_BY(mutex_);
  int streams_busy_ ABSL_GUARDED_BY(mutex_) = 0;

  Mutex join_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_SCHEDULING_DEVICE_SCHEDULER_H_
