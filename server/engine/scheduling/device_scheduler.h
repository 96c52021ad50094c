// SPDX-License-Identifier: Apache-2.0

// Runs jobs on one device: several concurrently, and small ones in dynamic batches.
#ifndef CROUT_SERVER_ENGINE_SCHEDULING_DEVICE_SCHEDULER_H_
#define CROUT_SERVER_ENGINE_SCHEDULING_DEVICE_SCHEDULER_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/device.h"
#include "server/engine/scheduling/job_scheduler.h"

namespace crout {

class JobBatcher;

// A job for a device. It runs either alone, by Run, or in a batch, by its JobBatcher.
class Job : public QueuedJob {
 public:
  // Called on a worker thread if `batcher` is null. `context` is exclusive to the job until Run
  // returns.
  virtual void Run(ExecutionContext& context) = 0;

  // Constant once submitted. If set, the batcher runs the job in one batch with queued jobs of the
  // same batcher and group.
  JobBatcher* batcher = nullptr;
  int group = 0;
};

// Runs batches of jobs. Thread-safe. Outlives its jobs.
class JobBatcher {
 public:
  virtual ~JobBatcher() = default;

  // Called in place of Job::Run. `jobs` has at least one job, and all its jobs have the same group.
  // Jobs of the same tenant are in the order of their submission. `waited` is the time for which an
  // idle stream held jobs back so that the batch could grow.
  virtual void Run(ExecutionContext& context, std::span<const std::shared_ptr<Job>> jobs,
                   Job::Clock::duration waited) = 0;
};

struct SchedulerOptions {
  // Number of streams. Each is an execution context with a worker thread, created at the start.
  // 0: DeviceInfo::parallelism, as always for a group.
  int streams = 0;
  size_t queue_capacity = 256;
  // Largest number of jobs in a batch. 0 counts as 1.
  size_t max_batch_jobs = 128;
  // A job with a batcher waits at most this long from its submission for its batch to fill. It
  // waits only while another stream is busy.
  absl::Duration max_batch_delay = absl::Microseconds(200);
  Quotas* quotas = nullptr;  // limits of the tenants; outlives the scheduler; null: none
};

// Runs the jobs of one device on a fixed set of contexts. If there are several, one of them runs
// only small jobs, so that small jobs do not wait for long ones. A job is small if it is predicted
// to take at most a second. Thread-safe.
class DeviceScheduler final : public JobScheduler {
 public:
  // Creates the contexts and starts the threads. Returns the first error. `device` outlives the
  // scheduler.
  static absl::StatusOr<std::unique_ptr<DeviceScheduler>> Create(Device* device,
                                                                 const SchedulerOptions& options);
  ~DeviceScheduler() override;  // Stop()

  // Queues a job; see Enqueue. UNAVAILABLE (reason DEVICE_LOST): the device is fenced.
  absl::Status Submit(std::shared_ptr<Job> job) { return Enqueue(std::move(job)); }

  Device& device() const { return *device_; }

 private:
  DeviceScheduler(Device* device, const SchedulerOptions& options,
                  std::vector<std::unique_ptr<ExecutionContext>> contexts);

  // Dequeues a job and the queued jobs of its batch.
  std::optional<Clock::time_point> Choose(size_t stream, DequeuedJobs& dequeued) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRun(size_t stream, const QueuedJob& job) const override;
  // A stream that waits for a batch to fill sees the jobs that join the batch.
  bool NeedsSignal(const QueuedJob& job) const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(size_t stream, DequeuedJobs& dequeued) override;
  absl::Status Refusal() const override;

  // Returns the job that `stream` starts now: the first in the queue of the jobs that the stream
  // may run. While that job waits for its batch to fill, returns the first job that does not wait,
  // if any.
  std::optional<Queue::Position> Startable(size_t stream, Clock::time_point now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if `first`, the first job in the queue, still waits for its batch to fill.
  bool IsBatchFilling(const Job& first, Clock::time_point now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the number of queued jobs of this job's batch.
  size_t BatchSize(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Dequeues `first` and, up to the size limit, the queued jobs of its batcher and group, in the
  // order of the queue.
  void DequeueBatch(Queue::Position first, DequeuedJobs& dequeued)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the earliest time at which the batch delay of a queued job ends. Returns nothing if no
  // job that `stream` may run is queued.
  std::optional<Clock::time_point> EndOfBatchDelay(size_t stream) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction. Only its worker thread uses a context.
  Device* const device_;
  const std::chrono::microseconds max_batch_delay_;
  // Built at construction, so that reporting it allocates no memory.
  const absl::Status fenced_;
  const std::vector<std::unique_ptr<ExecutionContext>> contexts_;
  // For each stream, the batch that it passes to a batcher. Only the stream's thread uses it.
  // Capacity for the largest batch is reserved at construction.
  std::vector<std::vector<std::shared_ptr<Job>>> batches_;

  // Time at which a stream began to hold jobs back for their batch to fill.
  std::optional<Clock::time_point> awaiting_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SCHEDULING_DEVICE_SCHEDULER_H_
