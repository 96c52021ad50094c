// SPDX-License-Identifier: Apache-2.0

// Runs the jobs of several calls as one batch (decision 0032).
#ifndef CROUT_SERVER_RPC_CALL_GATHERER_H_
#define CROUT_SERVER_RPC_CALL_GATHERER_H_

#include <functional>
#include <memory>
#include <span>

#include "kernels/jobs/gathered.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "server/observability/metrics/metrics.h"

namespace crout {

// What a call puts into a batch, and what it does with what came of it. Both on a worker's thread.
struct GatheredWork {
  // Of all systems of a batch.
  DType dtype = DType::kFloat64;
  Op op = Op::kNone;
  size_t device_index = 0;  // of the device, in the pool
  // Fills in the system. An error is its owner's alone.
  std::function<absl::Status(ExecutionContext& context, GatheredSystem& system)> prepare;
  // Answers, or does by itself what nobody did for it.
  std::function<void(ExecutionContext& context, GatheredSystem& system,
                     const GatheredTimings& timings)>
      finish;

  int group() const {
    constexpr int kOps = 3;
    return static_cast<int>(dtype) * kOps + static_cast<int>(op);
  }
};

// The job of a call. Where it has GatheredWork these run it, in their order, and not Run().
class CallJobBase : public Job {
 public:
  // It leaves the queue; false where nobody wants the work. Then nothing else is called.
  virtual bool Begin() = 0;
  // False where that was the call's end.
  virtual bool Prepare(ExecutionContext& context, GatheredSystem& system) = 0;
  virtual void Finish(ExecutionContext& context, GatheredSystem& system,
                      const GatheredTimings& timings) = 0;
  virtual void End() = 0;
  virtual bool stop_requested() const = 0;
  virtual const GatheredWork& gathered() const = 0;
};

// Its jobs are CallJobBases. Thread-safe.
class CallGatherer final : public JobGatherer {
 public:
  // Both outlive it. `host_memory`: for what is on its way to a device and back.
  CallGatherer(Metrics& metrics, MemoryResource& host_memory)
      : metrics_(metrics), host_memory_(host_memory) {}

  void Run(ExecutionContext& context, std::span<const std::shared_ptr<Job>> jobs,
           Job::Clock::duration waited) override;

 private:
  Metrics& metrics_;
  MemoryResource& host_memory_;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CALL_GATHERER_H_
