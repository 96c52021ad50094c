// The daemon's devices: each with its scheduler and its memory budget.
#ifndef CROUT_SERVER_SCHEDULING_DEVICE_POOL_H_
#define CROUT_SERVER_SCHEDULING_DEVICE_POOL_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/util/mutex.h"
#include "server/scheduling/device_scheduler.h"
#include "server/scheduling/memory_budget.h"

namespace crout {

// One device as the server sees it. Constant after construction, its parts are thread-safe or
// guarded as they say.
struct DeviceSlot {
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceScheduler> scheduler;
  // The host device's budget is the host budget itself, since both are the same memory.
  MemoryBudget* budget = nullptr;
  // Runs copies from the device to host memory beside the jobs.
  Mutex transfer_mutex;
  std::unique_ptr<ExecutionContext> transfer_context ABSL_PT_GUARDED_BY(transfer_mutex);
  int index = 0;  // position in the pool

  bool on_host() const { return device->info().kind == DeviceKind::kHost; }
};

struct DevicePoolOptions {
  SchedulerOptions scheduler;
  double memory_fraction = 0.9;    // of a CUDA device's memory, for its budget
  size_t device_budget_bytes = 0;  // 0: by memory_fraction
  size_t host_budget_bytes = 0;    // 0: half of the machine's memory, or of the cgroup's limit
};

// Thread-safe.

class DevicePool {
 public:
  // Makes every device's contexts; the first error ends it.
  static absl::StatusOr<std::unique_ptr<DevicePool>> Create(
      std::vector<std::unique_ptr<Device>> devices, const DevicePoolOptions& options);

  std::span<const std::unique_ptr<DeviceSlot>> slots() const { return slots_; }
  MemoryBudget& host_budget() { return *host_budget_; }

  // The healthy device of that name, or, for "", the healthy one with the least backlog; among
  // equals a GPU before the host, then the one with the fewest busy streams. INVALID_ARGUMENT for
  // an unknown name (the message lists them), UNAVAILABLE (reason DEVICE_LOST) when fenced.
  absl::StatusOr<DeviceSlot*> Choose(std::string_view name) const;

  bool any_healthy() const;

  void Stop();  // every scheduler

 private:
  DevicePool() = default;
  absl::Status Add(std::unique_ptr<Device> device, const DevicePoolOptions& options);

  // Constant after Create.
  std::unique_ptr<MemoryBudget> host_budget_;
  std::vector<std::unique_ptr<MemoryBudget>> device_budgets_;
  std::vector<std::unique_ptr<DeviceSlot>> slots_;
};

}  // namespace crout

#endif  // CROUT_SERVER_SCHEDULING_DEVICE_POOL_H_
