#include "server/scheduling/device_pool.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

// Of the machine, or of the container (cgroup v2) where that is less.
size_t UsableHostMemory() {
  const size_t physical =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  uint64_t limit = 0;
  std::ifstream file("/sys/fs/cgroup/memory.max");  // "max" where there is no limit
  return file >> limit && limit > 0 ? std::min<size_t>(physical, limit) : physical;
}

auto Rank(const DeviceSlot& slot) {
  const DeviceScheduler::Load load = slot.scheduler->load();
  return std::make_tuple(load.backlog_seconds, slot.on_host(), load.streams_busy);
}

absl::Status LostStatus(const std::string& what) {
  return WithReason(absl::UnavailableError(what), kReasonDeviceLost);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DevicePool>> DevicePool::Create(
    std::vector<std::unique_ptr<Device>> devices, const DevicePoolOptions& options) {
  if (devices.empty()) return absl::InvalidArgumentError("no device to serve with");
  std::unique_ptr<DevicePool> pool(new DevicePool);
  pool->host_budget_ = std::make_unique<MemoryBudget>(
      options.host_budget_bytes != 0 ? options.host_budget_bytes : UsableHostMemory() / 2);
  for (auto& device : devices) {
    if (auto status = pool->Add(std::move(device), options); !status.ok()) return status;
  }
  return pool;
}

absl::Status DevicePool::Add(std::unique_ptr<Device> device, const DevicePoolOptions& options) {
  auto slot = std::make_unique<DeviceSlot>();
  slot->device = std::move(device);
  slot->index = static_cast<int>(slots_.size());
  if (slot->on_host()) {
    slot->budget = host_budget_.get();
  } else {
    const auto share = static_cast<size_t>(static_cast<double>(slot->device->info().memory_bytes) *
                                           options.memory_fraction);
    device_budgets_.push_back(std::make_unique<MemoryBudget>(
        options.device_budget_bytes != 0 ? options.device_budget_bytes : share));
    slot->budget = device_budgets_.back().get();
  }
  auto context = slot->device->CreateContext();
  if (!context.ok()) return context.status();
  slot->transfer_context = *std::move(context);
  auto scheduler = DeviceScheduler::Create(slot->device.get(), options.scheduler);
  if (!scheduler.ok()) return scheduler.status();
  slot->scheduler = *std::move(scheduler);
  slots_.push_back(std::move(slot));
  return absl::OkStatus();
}

absl::StatusOr<DeviceSlot*> DevicePool::Choose(std::string_view name) const {
  if (name.empty()) {
    DeviceSlot* best = nullptr;
    for (const auto& slot : slots_) {
      if (!slot->device->healthy()) continue;
      if (best == nullptr || Rank(*slot) < Rank(*best)) best = slot.get();
    }
    if (best == nullptr) return LostStatus("every device was lost");
    return best;
  }
  for (const auto& slot : slots_) {
    if (slot->device->info().name != name) continue;
    if (!slot->device->healthy())
      return LostStatus(absl::StrCat("device ", slot->device->info().name, " was lost"));
    return slot.get();
  }
  const auto append_name = [](std::string* out, const auto& slot) {
    out->append(slot->device->info().name);
  };
  return absl::InvalidArgumentError(
      absl::StrCat("unknown device; there are: ", absl::StrJoin(slots_, ", ", append_name)));
}

bool DevicePool::any_healthy() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& slot) { return slot->device->healthy(); });
}

void DevicePool::Stop() {
  for (const auto& slot : slots_) slot->scheduler->Stop();
}

}  // namespace crout
