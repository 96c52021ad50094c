// SPDX-License-Identifier: Apache-2.0

// The daemon's devices: each with its scheduler, its memory budget and its threads.
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

// Jobs that are on their way to a device: those whose payload is still arriving. Thread-safe.
class ExpectedJobs {
 public:
  struct Sum {
    int jobs = 0;
    double seconds = 0;
    size_t bytes = 0;  // not reserved yet
  };
  Sum sum() const;

  // Counts a job while it lives.
  class Job {
   public:
    Job(ExpectedJobs& jobs, double seconds, size_t bytes);
    ~Job();
    Job(const Job&) = delete;  // One job counts once.
    Job& operator=(const Job&) = delete;

    // The budget counts its bytes from now on.
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

// One device as the server sees it. Constant after construction, its parts are thread-safe or
// guarded as they say.
struct DeviceSlot {
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceScheduler> scheduler;
  std::unique_ptr<MemoryWatch> memory_watch;
  // The host device's budget is the host budget itself, since both are the same memory.
  MemoryBudget* budget = nullptr;
  // Runs copies from the device to host memory beside the jobs.
  Mutex transfer_mutex;
  std::unique_ptr<ExecutionContext> transfer_context ABSL_PT_GUARDED_BY(transfer_mutex);
  int index = 0;  // position in the pool

  // Of the budget: what idle cached factors hold, and would give up. The cache keeps it.
  std::atomic<size_t> idle_bytes = 0;
  ExpectedJobs expected;
  std::atomic<int64_t> chosen_at = 0;  // the pool's count of choices

  // Whatever may wait for the device runs on threads of its own, so that no device waits for
  // another.
  std::unique_ptr<TaskScheduler> admitting;  // evictions, large allocations, copies of factors
  std::unique_ptr<TaskScheduler> preparing;  // the ends of uploads that are parsed, and analyses
  // Gives back memory; waits for copies in flight at most. Null once the pool was stopped.
  std::unique_ptr<ThreadPool> releasing;

  bool on_host() const { return device->info().kind == DeviceKind::kHost; }
};

struct DevicePoolOptions {
  SchedulerOptions scheduler;
  double memory_fraction = 0.9;    // of a CUDA device's memory, for its budget
  size_t device_budget_bytes = 0;  // 0: by memory_fraction
  size_t host_budget_bytes = 0;    // 0: half of the machine's memory, or of the cgroup's limit
};

// What a job would take on one device.
struct JobDemand {
  double seconds = 0;
  size_t bytes = 0;
};

// Thread-safe.
class DevicePool {
 public:
  // Makes every device's contexts; the first error ends it.
  static absl::StatusOr<std::unique_ptr<DevicePool>> Create(
      std::vector<std::unique_ptr<Device>> devices, const DevicePoolOptions& options);

  std::span<const std::unique_ptr<DeviceSlot>> slots() const { return slots_; }
  bool has_gpu() const {
    return std::ranges::any_of(slots_, [](const auto& slot) { return !slot->on_host(); });
  }
  MemoryBudget& host_budget() { return *host_budget_; }

  // The healthy device of that name, or, for "", the healthy one that is expected to be done first
  // with a job of that demand, behind those that run, wait and are on their way, all that must be
  // evicted for it moved out before. One with room for it goes before one without; among equals a
  // GPU before the host, then the one with the fewest jobs, then the one chosen longest ago.
  // INVALID_ARGUMENT for an unknown name (the message lists them), UNAVAILABLE (reason DEVICE_LOST)
  // when fenced. A demand that is an error excludes its device, and is returned where it excludes
  // the last; where there is no choice it is not asked for.
  using DemandOn = absl::FunctionRef<absl::StatusOr<JobDemand>(DeviceSlot&)>;
  absl::StatusOr<DeviceSlot*> Choose(std::string_view name, DemandOn demand) const;
  absl::StatusOr<DeviceSlot*> Choose(std::string_view name) const;

  bool any_healthy() const;

  void Stop();  // every scheduler, and the threads, which finish what they were given

 private:
  DevicePool() = default;
  absl::Status Add(std::unique_ptr<Device> device, const DevicePoolOptions& options);
  absl::StatusOr<DeviceSlot*> Named(std::string_view name) const;

  // Constant after Create.
  std::unique_ptr<MemoryBudget> host_budget_;
  std::vector<std::unique_ptr<MemoryBudget>> device_budgets_;
  std::vector<std::unique_ptr<DeviceSlot>> slots_;

  mutable std::atomic<int64_t> choices_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_SCHEDULING_DEVICE_POOL_H_
