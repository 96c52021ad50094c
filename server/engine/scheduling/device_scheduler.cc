// SPDX-License-Identifier: Apache-2.0

#include "server/engine/scheduling/device_scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/util/clock.h"
#include "server/engine/reason.h"

namespace crout {
namespace {

absl::Status FencedStatus(const Device& device) {
  return WithReason(absl::UnavailableError(absl::StrCat("device ", device.info().name,
                                                        " was lost. Choose another device")),
                    kReasonDeviceLost);
}

// The cast is safe: jobs enter a DeviceScheduler only through Submit, which takes a Job.
const Job& AsJob(const std::shared_ptr<QueuedJob>& job) { return static_cast<const Job&>(*job); }

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceScheduler>> DeviceScheduler::Create(
    Device* device, const SchedulerOptions& options) {
  const int streams = options.streams == 0 ? device->info().parallelism : options.streams;
  if (streams < 1)
    return absl::InvalidArgumentError("the device has no streams; it needs at least one");
  std::vector<std::unique_ptr<ExecutionContext>> contexts;
  for (int i = 0; i < streams; ++i) {
    auto context = device->CreateContext();
    if (!context.ok()) return context.status();
    contexts.push_back(*std::move(context));
  }
  return std::unique_ptr<DeviceScheduler>(
      new DeviceScheduler(device, options, std::move(contexts)));
}

DeviceScheduler::DeviceScheduler(Device* device, const SchedulerOptions& options,
                                 std::vector<std::unique_ptr<ExecutionContext>> contexts)
    : JobScheduler({.name = device->info().name,
                    .streams = contexts.size(),
                    .queue_capacity = options.queue_capacity,
                    .most_together = std::max<size_t>(options.gather_jobs, 1),
                    .failpoint = "scheduler.job"}),
      device_(device),
      gather_window_(options.gather_window),
      fenced_(FencedStatus(*device)),
      contexts_(std::move(contexts)),
      gathered_(contexts_.size()) {
  for (auto& jobs : gathered_) jobs.reserve(options_.most_together);
  Start();
}

DeviceScheduler::~DeviceScheduler() { Stop(); }

absl::Status DeviceScheduler::Refusal() const {
  return device_->healthy() ? absl::OkStatus() : fenced_;
}

void DeviceScheduler::Run(size_t stream, Taken& taken) {
  ExecutionContext& context = *contexts_[stream];
  JobGatherer* const gatherer = AsJob(taken.jobs.front()).gatherer;
  if (gatherer == nullptr) return static_cast<Job&>(*taken.jobs.front()).Run(context);
  std::vector<std::shared_ptr<Job>>& jobs = gathered_[stream];
  for (const auto& job : taken.jobs) jobs.push_back(std::static_pointer_cast<Job>(job));
  taken.jobs.clear();
  gatherer->Run(context, jobs, taken.waited);
  jobs.clear();
}

std::optional<DeviceScheduler::Clock::time_point> DeviceScheduler::Choose(size_t /*stream*/,
                                                                          Taken& taken) {
  const std::optional<Queue::Position> first = Startable(SteadyNow());
  if (!first) return EndOfWindow();
  TakeTogether(*first, taken);
  return std::nullopt;
}

std::optional<DeviceScheduler::Clock::time_point> DeviceScheduler::EndOfWindow() const {
  std::optional<Clock::time_point> end;
  queue_.ForEach([&](const std::shared_ptr<QueuedJob>& job) {
    const Clock::time_point its_end = job->submitted() + gather_window_;
    end = end ? std::min(*end, its_end) : its_end;
  });
  return end;
}

bool DeviceScheduler::AwaitsCompany(const Job& first, Clock::time_point now) const {
  if (first.gatherer == nullptr || streams_busy_ == 0 ||
      now >= first.submitted() + gather_window_) {
    return false;
  }
  size_t together = 0;
  queue_.ForEach([&](const std::shared_ptr<QueuedJob>& job) {
    const Job& other = AsJob(job);
    if (other.gatherer == first.gatherer && other.group == first.group) ++together;
  });
  return together < options_.most_together;
}

std::optional<DeviceScheduler::Queue::Position> DeviceScheduler::Startable(Clock::time_point now) {
  const auto first = queue_.Find([](const auto&) { return true; });
  if (!first || !AwaitsCompany(AsJob(*first->item), now)) return first;
  if (!awaiting_since_) awaiting_since_ = now;
  return queue_.Find([&](const std::shared_ptr<QueuedJob>& job) {
    return AsJob(job).gatherer == nullptr || now >= job->submitted() + gather_window_;
  });
}

void DeviceScheduler::TakeTogether(Queue::Position first, Taken& taken) {
  const JobGatherer* const gatherer = AsJob(*first.item).gatherer;
  const int group = AsJob(*first.item).group;
  Take(first, taken);
  if (gatherer == nullptr) return;
  if (awaiting_since_) taken.waited = SteadyNow() - *std::exchange(awaiting_since_, std::nullopt);
  while (taken.jobs.size() < options_.most_together) {
    const auto next = queue_.Find([&](const std::shared_ptr<QueuedJob>& job) {
      return AsJob(job).gatherer == gatherer && AsJob(job).group == group;
    });
    if (!next) return;
    Take(*next, taken);
  }
}

}  // namespace crout
