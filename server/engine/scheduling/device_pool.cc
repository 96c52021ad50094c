// SPDX-License-Identifier: Apache-2.0

#include "server/engine/scheduling/device_pool.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/host/device/host_info.h"
#include "kernels/util/size_class.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// Threads of each device. Each TaskScheduler has one more thread, for small tasks.
// docs/internals.md lists the tasks of each kind.
constexpr int kAdmittingThreads = 4;
// They copy factors to host memory and then wait for the threads of the store.
constexpr int kStoringThreads = 4;
constexpr int kPreparingThreads = 2;
constexpr int kReleasingThreads = 2;

// Availability of a device's memory for a job: at once, after running jobs have ended, or never.
// Rank prefers the smaller value.
enum class Availability : uint8_t { kNow, kLater, kNever };

// Returns whether a job of `bytes` fits into the device's budget, with idle cached factors evicted
// if necessary. Sets `evicted` to the bytes that must be evicted for it.
Availability AvailabilityOf(const DeviceSlot& slot, size_t bytes, size_t* evicted) {
  const size_t limit = slot.budget->limit();
  const size_t taken = slot.budget->reserved() + slot.expected.sum().bytes;
  const size_t free = limit - std::min(limit, taken);
  *evicted = bytes - std::min(bytes, free);
  if (bytes > limit) return Availability::kNever;
  return *evicted > slot.idle_bytes ? Availability::kLater : Availability::kNow;
}

double WaitOf(const DeviceScheduler::Load& load, const ExpectedJobs::Sum& expected) {
  return load.work_seconds + expected.seconds / load.streams;
}

// A device that could run a job, and the demand of the job there.
struct Candidate {
  DeviceSlot* slot = nullptr;
  JobDemand demand;

  bool fits() const { return demand.bytes <= slot->budget->limit(); }
};

// Returns true for a group or an out-of-core device that should not run the job, because its memory
// is too small or a simpler device has enough. The simpler device is the GPU of an out-of-core
// device. For a group it is any GPU or the host device.
bool IsLastChoice(const Candidate& candidate, const std::vector<Candidate>& all) {
  const DeviceSlot& slot = *candidate.slot;
  if (slot.gpu == nullptr && !slot.is_group()) return false;
  if (!candidate.fits()) return true;
  return std::any_of(all.begin(), all.end(), [&](const Candidate& other) {
    const bool simpler = slot.is_group() ? !other.slot->is_group() && other.slot->gpu == nullptr
                                         : other.slot == slot.gpu;
    return simpler && other.fits();
  });
}

// Returns a key that compares devices for a job: the device with the smallest key is chosen.
auto Rank(const Candidate& candidate, const std::vector<Candidate>& all) {
  const auto& [job_slot, demand] = candidate;
  const DeviceSlot& slot = *job_slot;
  const DeviceScheduler::Load load = slot.scheduler->load();
  const ExpectedJobs::Sum expected = slot.expected.sum();
  size_t evicted = 0;
  const Availability memory = AvailabilityOf(slot, demand.bytes, &evicted);
  const double seconds =
      WaitOf(load, expected) + demand.seconds + static_cast<double>(evicted) / kDeviceCopyRate;
  const size_t jobs = load.queue_depth + static_cast<size_t>(load.streams_busy + expected.jobs);
  return std::make_tuple(memory == Availability::kNever, IsLastChoice(candidate, all), memory,
                         seconds, slot.on_host(), jobs, slot.chosen_at.load());
}

absl::Status LostStatus(const std::string& what) {
  return WithReason(absl::UnavailableError(what), kReasonDeviceLost);
}

}  // namespace

ExpectedJobs::Sum ExpectedJobs::sum() const {
  MutexLock lock(&mutex_);
  return sum_;
}

ExpectedJobs::Job::Job(ExpectedJobs& jobs, double seconds, size_t bytes)
    : jobs_(jobs), seconds_(seconds), bytes_(bytes) {
  MutexLock lock(&jobs_.mutex_);
  ++jobs_.sum_.jobs;
  jobs_.sum_.seconds += seconds_;
  jobs_.sum_.bytes += bytes_;
}

ExpectedJobs::Job::~Job() {
  MutexLock lock(&jobs_.mutex_);
  Sum& sum = jobs_.sum_;
  --sum.jobs;
  sum.bytes -= bytes_;
  // Reset to exactly zero when no job is left, because rounding errors accumulate in the sum.
  sum.seconds = sum.jobs == 0 ? 0 : sum.seconds - seconds_;
}

void ExpectedJobs::Job::Reserved() {
  MutexLock lock(&jobs_.mutex_);
  jobs_.sum_.bytes -= std::exchange(bytes_, 0);
}

double DeviceSlot::PredictWait() const { return WaitOf(scheduler->load(), expected.sum()); }

bool DeviceSlot::IsIdle() const {
  const DeviceScheduler::Load load = scheduler->load();
  return load.streams_busy == 0 && load.queue_depth == 0 && expected.sum().jobs == 0;
}

absl::StatusOr<std::unique_ptr<DevicePool>> DevicePool::Create(
    std::vector<std::shared_ptr<Device>> devices, const DevicePoolOptions& options) {
  if (devices.empty()) return absl::InvalidArgumentError("no device is configured");
  std::unique_ptr<DevicePool> pool(new DevicePool);
  pool->host_budget_ = std::make_unique<MemoryBudget>(
      options.host_budget_bytes != 0 ? options.host_budget_bytes : host::SystemMemoryBytes() / 2);
  for (auto& device : devices) {
    if (auto status = pool->Add(std::move(device), options); !status.ok()) return status;
  }
  return pool;
}

absl::Status DevicePool::Add(std::shared_ptr<Device> device, const DevicePoolOptions& options) {
  auto slot = std::make_unique<DeviceSlot>();
  slot->device = std::move(device);
  slot->index = static_cast<int>(slots_.size());
  for (const auto& other : slots_) {
    if (other->device->info().name == slot->device->info().factors_on) slot->gpu = other.get();
  }
  if (auto status = SetBudget(*slot, options); !status.ok()) return status;
  auto context = slot->device->CreateContext();
  if (!context.ok()) return context.status();
  slot->transfer_context = *std::move(context);
  auto scheduler = DeviceScheduler::Create(slot->device.get(), options.scheduler);
  if (!scheduler.ok()) return scheduler.status();
  slot->scheduler = *std::move(scheduler);
  slot->memory_watch = std::make_unique<MemoryWatch>(*slot->device);
  const std::string& name = slot->device->info().name;
  slot->admitting = std::make_unique<TaskScheduler>(
      TaskScheduler::Options{.name = absl::StrCat(name, " (admission)"),
                             .threads = kAdmittingThreads,
                             .capacity = options.scheduler.queue_capacity});
  slot->preparing = std::make_unique<TaskScheduler>(
      TaskScheduler::Options{.name = absl::StrCat(name, " (analysis)"),
                             .threads = kPreparingThreads,
                             .capacity = options.scheduler.queue_capacity});
  slot->storing = std::make_unique<TaskScheduler>(
      TaskScheduler::Options{.name = absl::StrCat(name, " (store)"),
                             .threads = kStoringThreads,
                             .capacity = options.scheduler.queue_capacity});
  slot->releasing = std::make_unique<ThreadPool>(kReleasingThreads);
  slots_.push_back(std::move(slot));
  return absl::OkStatus();
}

absl::Status DevicePool::SetBudget(DeviceSlot& slot, const DevicePoolOptions& options) {
  if (slot.on_host()) {
    slot.budget = host_budget_.get();
    return absl::OkStatus();
  }
  const DeviceInfo& info = slot.device->info();
  const auto share =
      static_cast<size_t>(static_cast<double>(info.memory_bytes) * options.memory_fraction);
  const size_t bytes = options.device_budget_bytes != 0 ? options.device_budget_bytes : share;
  const size_t held = BlockBytes(options.out_of_core_bytes);
  if (held >= bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out-of-core-memory=", options.out_of_core_bytes, " leaves none of the ",
                     bytes, " bytes of ", info.name,
                     " for other jobs. Set a smaller size, or a larger --device-budget"));
  }
  device_budgets_.push_back(std::make_unique<MemoryBudget>(bytes - held));
  slot.budget = device_budgets_.back().get();
  return absl::OkStatus();
}

absl::StatusOr<DeviceSlot*> DevicePool::Choose(std::string_view name) const {
  return Choose(name, [](DeviceSlot&) { return JobDemand(); });
}

absl::StatusOr<DeviceSlot*> DevicePool::Choose(std::string_view name, DemandOn demand) const {
  if (!name.empty()) return Named(name);
  std::vector<DeviceSlot*> healthy;
  for (const auto& slot : slots_) {
    if (slot->device->healthy()) healthy.push_back(slot.get());
  }
  if (healthy.empty()) return LostStatus("all devices were lost. Restart the server");
  if (healthy.size() == 1) return healthy.front();
  absl::Status refused;
  std::vector<Candidate> candidates;
  for (DeviceSlot* slot : healthy) {
    const absl::StatusOr<JobDemand> here = demand(*slot);
    if (here.ok()) candidates.push_back({slot, *here});
    refused.Update(here.status());
  }
  if (candidates.empty()) return refused;
  const auto best = std::min_element(candidates.begin(), candidates.end(),
                                     [&](const Candidate& a, const Candidate& b) {
                                       return Rank(a, candidates) < Rank(b, candidates);
                                     });
  best->slot->chosen_at = ++choices_;
  return best->slot;
}

absl::StatusOr<DeviceSlot*> DevicePool::Named(std::string_view name) const {
  for (const auto& slot : slots_) {
    if (slot->device->info().name != name) continue;
    if (!slot->device->healthy())
      return LostStatus(
          absl::StrCat("device ", slot->device->info().name, " was lost. Choose another device"));
    return slot.get();
  }
  const auto append_name = [](std::string* out, const auto& slot) {
    out->append(slot->device->info().name);
  };
  return absl::InvalidArgumentError(absl::StrCat("unknown device '", ToAbsl(name), "'; available: ",
                                                 absl::StrJoin(slots_, ", ", append_name)));
}

bool DevicePool::any_healthy() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& slot) { return slot->device->healthy(); });
}

void DevicePool::Stop() {
  for (const auto& slot : slots_) slot->scheduler->Stop();
  for (const auto& slot : slots_) {
    slot->preparing->Stop();
    slot->admitting->Stop();
    slot->storing->Stop();
  }
  // Last, because the schedulers submit tasks to it.
  for (const auto& slot : slots_) slot->releasing.reset();
}

}  // namespace crout
