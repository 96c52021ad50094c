// SPDX-License-Identifier: Apache-2.0

// Runs several jobs as one batch (decision 0032).
#ifndef CROUT_SERVER_ENGINE_BATCHING_DYNAMIC_BATCHER_H_
#define CROUT_SERVER_ENGINE_BATCHING_DYNAMIC_BATCHER_H_

#include <functional>
#include <memory>
#include <span>

#include "kernels/jobs/batch/dynamic_batch.h"
#include "server/engine/job_events.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/engine/scheduling/device_scheduler.h"

namespace crout {

// A job's contribution to a batch, and the handling of its results. Both functions run on a worker
// thread, `prepare` first.
struct DynamicBatchWork {
  // All systems of a batch have the same type and operation.
  DType dtype = DType::kFloat64;
  Op op = Op::kNone;
  const DeviceSlot* slot = nullptr;  // device on which the batch runs
  // Fills in the system. An error ends this job only.
  std::function<absl::Status(ExecutionContext& context, DynamicBatchSystem& system)> prepare;
  // Handles the result. If the batch did not process the system, first processes it alone.
  std::function<void(ExecutionContext& context, DynamicBatchSystem& system,
                     const DynamicBatchTimings& timings)>
      finish;

  // Returns the Job::group of the job.
  int group() const {
    constexpr int kOps = 3;
    return static_cast<int>(dtype) * kOps + static_cast<int>(op);
  }
};

// A job that may run in a batch. DynamicBatcher then calls Begin, Prepare, Finish and End, in this
// order, instead of Run.
class DynamicBatchJob : public Job {
 public:
  // Begins the job after the queue has released it. Returns false if its result is no longer
  // needed; no other function is then called.
  virtual bool Begin() = 0;
  // Fills in the system. Returns false if the job was ended; Finish is then not called.
  virtual bool Prepare(ExecutionContext& context, DynamicBatchSystem& system) = 0;
  virtual void Finish(ExecutionContext& context, DynamicBatchSystem& system,
                      const DynamicBatchTimings& timings) = 0;
  virtual void End() = 0;
  virtual bool stop_requested() const = 0;
  virtual const DynamicBatchWork& batch_work() const = 0;
};

// Runs jobs of one group as one batch. All jobs are DynamicBatchJob objects. Thread-safe.
class DynamicBatcher final : public JobBatcher {
 public:
  // Both arguments outlive the batcher. `host_memory` supplies memory for transfers to and from
  // the device.
  DynamicBatcher(JobEvents& events, MemoryResource& host_memory)
      : events_(events), host_memory_(host_memory) {}

  void Run(ExecutionContext& context, std::span<const std::shared_ptr<Job>> jobs,
           Job::Clock::duration waited) override;

 private:
  JobEvents& events_;
  MemoryResource& host_memory_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_BATCHING_DYNAMIC_BATCHER_H_
