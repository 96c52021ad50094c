// SPDX-License-Identifier: Apache-2.0

// Runs jobs on one device, several at once and small ones together.
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
#include "kernels/device.h"
#include "server/engine/scheduling/job_scheduler.h"

namespace crout {

class JobGatherer;

// A job of a device. Its gatherer may run it in place of Run.
class Job : public QueuedJob {
 public:
  // On a worker thread, with a context that nothing else uses until it returns.
  virtual void Run(ExecutionContext& context) = 0;

  // Constant once submitted. Set: the gatherer runs the job, together with others of the same
  // gatherer and group that are queued when its turn comes.
  JobGatherer* gatherer = nullptr;
  int group = 0;
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

// The jobs of one device, each on a context that is made at the start. Thread-safe.
class DeviceScheduler final : public JobScheduler {
 public:
  // Makes `options.streams` contexts; the first error ends it.
  static absl::StatusOr<std::unique_ptr<DeviceScheduler>> Create(Device* device,
                                                                 const SchedulerOptions& options);
  ~DeviceScheduler() override;  // Stop()

  // As Enqueue; UNAVAILABLE (reason DEVICE_LOST) when the device is fenced.
  absl::Status Submit(std::shared_ptr<Job> job) { return Enqueue(std::move(job)); }

  Device& device() const { return *device_; }

 private:
  DeviceScheduler(Device* device, const SchedulerOptions& options,
                  std::vector<std::unique_ptr<ExecutionContext>> contexts);

  // Takes a job, and what is gathered with it.
  std::optional<Clock::time_point> Choose(size_t stream, Taken& taken) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(size_t stream, Taken& taken) override;
  absl::Status Refusal() const override;

  // The job to start now: the first that does not wait for company.
  std::optional<Queue::Position> Startable(Clock::time_point now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the first job does.
  bool AwaitsCompany(const Job& first, Clock::time_point now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the job, and others with it, by turns of their tenants.
  void TakeTogether(Queue::Position first, Taken& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // When the first of the jobs that wait for company is to start without it.
  std::optional<Clock::time_point> EndOfWindow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction; each context is its worker's own.
  Device* const device_;
  const std::chrono::microseconds gather_window_;
  // Made while there is memory for it.
  const absl::Status fenced_;
  const std::vector<std::unique_ptr<ExecutionContext>> contexts_;
  // Each stream's own: what its gatherer gets, with room for the most that it may get.
  std::vector<std::vector<std::shared_ptr<Job>>> gathered_;

  // Since when a stream has let jobs wait for company.
  std::optional<Clock::time_point> awaiting_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SCHEDULING_DEVICE_SCHEDULER_H_
