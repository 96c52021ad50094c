// SPDX-License-Identifier: Apache-2.0

// Runs the jobs of several calls as one batch (decision 0032).
#ifndef CROUT_SERVER_RPC_CALL_BATCHER_H_
#define CROUT_SERVER_RPC_CALL_BATCHER_H_

#include <functional>
#include <memory>
#include <span>

#include "kernels/jobs/dynamic_batch.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "server/observability/metrics/metrics.h"

namespace crout {

// A call's contribution to a batch, and the handling of its results. Both functions run on a worker
// thread.
struct DynamicBatchWork {
  // All systems of a batch have the same type and operation.
  DType dtype = DType::kFloat64;
  Op op = Op::kNone;
  size_t device_index = 0;  // index of the device in the pool
  // Fills in the system. An error ends this call only.
  std::function<absl::Status(ExecutionContext& context, DynamicBatchSystem& system)> prepare;
  // Sends the answer. If the batch did not process the system, processes it alone first.
  std::function<void(ExecutionContext& context, DynamicBatchSystem& system,
                     const DynamicBatchTimings& timings)>
      finish;

  int group() const {
    constexpr int kOps = 3;
    return static_cast<int>(dtype) * kOps + static_cast<int>(op);
  }
};

// The job of a call. For a job with DynamicBatchWork, CallBatcher calls the functions below, in
// their order, instead of Run().
class CallJobBase : public Job {
 public:
  // Takes the job out of the queue. False if the call has ended; no other function is called then.
  virtual bool Begin() = 0;
  // False if this ended the call.
  virtual bool Prepare(ExecutionContext& context, DynamicBatchSystem& system) = 0;
  virtual void Finish(ExecutionContext& context, DynamicBatchSystem& system,
                      const DynamicBatchTimings& timings) = 0;
  virtual void End() = 0;
  virtual bool stop_requested() const = 0;
  virtual const DynamicBatchWork& batch_work() const = 0;
};

// Requires that all jobs are CallJobBase objects. Thread-safe.
class CallBatcher final : public JobBatcher {
 public:
  // Both arguments outlive the batcher. `host_memory` supplies memory for transfers to and from
  // the device.
  CallBatcher(Metrics& metrics, MemoryResource& host_memory)
      : metrics_(metrics), host_memory_(host_memory) {}

  void Run(ExecutionContext& context, std::span<const std::shared_ptr<Job>> jobs,
           Job::Clock::duration waited) override;

 private:
  Metrics& metrics_;
  MemoryResource& host_memory_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_BATCHER_H_
