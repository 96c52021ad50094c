// SPDX-License-Identifier: Apache-2.0

// The daemon's devices, each with a scheduler, a memory budget and threads.
#ifndef CROUT_SERVER_ENGINE_SCHEDULING_DEVICE_POOL_H_
#define CROUT_SERVER_ENGINE_SCHEDULING_DEVICE_POOL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/util/mutex.h"
#include "kernels/util/thread_pool.h"
#include "server/engine/admission/memory_budget.h"
#include "server/engine/admission/memory_watch.h"
#include "server/engine/scheduling/device_scheduler.h"
#include "server/engine/scheduling/task_scheduler.h"

namespace crout {

// Counts the jobs that were placed on a device and are not queued there yet, for example because
// their payload is still arriving. Thread-safe.
class ExpectedJobs {
 public:
  struct Sum {
    int jobs = 0;
    double seconds = 0;
    size_t bytes = 0;  // not yet reserved from the device's budget
  };
  Sum sum() const;

  // Counts one job from construction to destruction.
  class Job {
   public:
    Job(ExpectedJobs& jobs, double seconds, size_t bytes);
    ~Job();
    Job(const Job&) = delete;  // One job counts once.
    Job& operator=(const Job&) = delete;

    // Removes the job's bytes from the sum. Call it once the budget has reserved them.
    void Reserved();

   private:
    ExpectedJobs& jobs_;
    const double seconds_;
    size_t bytes_;
  };

 private:
  mutable Mutex mutex_;
  Sum sum_ ABSL_GUARDED_BY(mutex_);
};

// One device and the server components that belong to it. Pointers are constant after construction,
// except that DevicePool::Stop resets `releasing`. The components are thread-safe or have a mutex.
struct DeviceSlot {
  std::shared_ptr<Device> device;  // an out-of-core device shares its GPU
  std::unique_ptr<DeviceScheduler> scheduler;
  std::unique_ptr<MemoryWatch> memory_watch;
  // The pool owns the budget. The host device uses the pool's host budget, because its device
  // memory is host memory.
  MemoryBudget* budget = nullptr;
  // `transfer_context` copies data from the device to host memory while jobs run.
  Mutex transfer_mutex;
  std::unique_ptr<ExecutionContext> transfer_context ABSL_PT_GUARDED_BY(transfer_mutex);
  int index = 0;                    // position in the pool
  const DeviceSlot* gpu = nullptr;  // the GPU of an out-of-core device; null for other devices

  // Bytes of the budget held by idle cached factors, which can be evicted, and by copies of factors
  // of other devices. Updated by the cache.
  std::atomic<size_t> idle_bytes = 0;
  ExpectedJobs expected;
  std::atomic<int64_t> chosen_at = 0;  // number of the pool's choice that last chose this device

  // Work that may block on the device runs on the device's own threads, so that a slow device does
  // not delay the others.
  std::unique_ptr<TaskScheduler> admitting;  // evictions, large allocations, copies of factors
  std::unique_ptr<TaskScheduler> preparing;  // completion of parsed uploads, analyses
  std::unique_ptr<TaskScheduler> storing;    // files of durable factors
  // Frees memory. A task waits at most for copies in flight. Null after DevicePool::Stop.
  std::unique_ptr<ThreadPool> releasing;

  bool on_host() const { return device->info().kind == DeviceKind::kHost; }
  bool is_group() const { return device->info().ranks > 0; }
  // Predicted seconds until all running, queued and expected jobs have ended.
  double PredictWait() const;
  // Returns true if no job runs, is queued or is expected.
  bool IsIdle() const;
};

struct DevicePoolOptions {
  SchedulerOptions scheduler;
  double memory_fraction = 0.9;    // budget of a CUDA device, as a share of its memory
  size_t device_budget_bytes = 0;  // budget of each CUDA device; 0: use memory_fraction
  size_t host_budget_bytes = 0;    // 0: half of the machine's memory or of the cgroup's limit
  // Memory of each CUDA device that its out-of-core device holds. It is not part of the budget.
  size_t out_of_core_bytes = 0;
};

// Estimated demand of a job on one device.
struct JobDemand {
  double seconds = 0;
  size_t bytes = 0;  // bytes of the device's budget
};

// Assumed rate of copies from and to a device, in bytes per second; roughly the rate of PCI
// Express.
inline constexpr double kDeviceCopyRate = 10e9;

// Thread-safe.
class DevicePool {
 public:
  // Creates the contexts and schedulers of all devices. Returns the first error.
  static absl::StatusOr<std::unique_ptr<DevicePool>> Create(
      std::vector<std::shared_ptr<Device>> devices, const DevicePoolOptions& options);

  std::span<const std::unique_ptr<DeviceSlot>> slots() const { return slots_; }
  bool has_gpu() const {
    return std::ranges::any_of(slots_, [](const auto& slot) { return !slot->on_host(); });
  }
  MemoryBudget& host_budget() { return *host_budget_; }

  // Returns the device `name` if it is healthy. For an empty name, returns the healthy device that
  // is predicted to finish the job first. The prediction includes running, queued and expected jobs
  // and the time to evict factors for this job. A device that can free enough memory now is
  // preferred to one that cannot. A device whose budget is smaller than the job is the last choice.
  // An out-of-core device is chosen only if the job exceeds the budget of its GPU, and a group only
  // if it exceeds the budget of each GPU and of the host device. If both may be chosen, the
  // predicted time decides.
  // Ties prefer a GPU to the host, then the device with the fewest jobs, then the one chosen
  // longest ago.
  //
  // `demand` returns the demand of the job on a device. It is not called if a name is given or only
  // one device is healthy. A device for which it returns an error is excluded. If it returns an
  // error for every healthy device, Choose returns the first one.
  //
  // INVALID_ARGUMENT: no device has this name; the message lists the names. UNAVAILABLE (reason
  // DEVICE_LOST): the named device, or every device, is fenced.
  using DemandOn = absl::FunctionRef<absl::StatusOr<JobDemand>(DeviceSlot&)>;
  absl::StatusOr<DeviceSlot*> Choose(std::string_view name, DemandOn demand) const;
  // The same for a job of unknown demand.
  absl::StatusOr<DeviceSlot*> Choose(std::string_view name) const;

  bool any_healthy() const;

  // Stops every scheduler. Then waits for the tasks of the `releasing` threads and joins them.
  void Stop();

 private:
  DevicePool() = default;
  absl::Status Add(std::shared_ptr<Device> device, const DevicePoolOptions& options);
  absl::Status SetBudget(DeviceSlot& slot, const DevicePoolOptions& options);
  absl::StatusOr<DeviceSlot*> Named(std::string_view name) const;

  // Constant after Create.
  std::unique_ptr<MemoryBudget> host_budget_;
  std::vector<std::unique_ptr<MemoryBudget>> device_budgets_;
  std::vector<std::unique_ptr<DeviceSlot>> slots_;

  mutable std::atomic<int64_t> choices_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SCHEDULING_DEVICE_POOL_H_
