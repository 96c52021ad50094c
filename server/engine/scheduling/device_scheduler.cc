// SPDX-License-Identifier: Apache-2.0

#include "server/engine/scheduling/device_scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/util/clock.h"
#include "server/engine/error.h"

namespace crout {
namespace {

absl::Status FencedStatus(const Device& device) {
  return WithReason(absl::UnavailableError(absl::StrCat("device ", device.info().name,
                                                        " was lost. Choose another device")),
                    kReasonDeviceLost);
}

constexpr double kSmallSeconds = 1;  // longest predicted time of a job on kSmallStream

// The cast is safe: jobs enter a DeviceScheduler only through Submit, which takes a Job.
const Job& AsJob(const std::shared_ptr<QueuedJob>& job) { return static_cast<const Job&>(*job); }

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceScheduler>> DeviceScheduler::Create(
    Device* device, const SchedulerOptions& options) {
  const DeviceInfo& info = device->info();
  const int streams =
      options.streams == 0 || info.runs_single_jobs() ? info.parallelism : options.streams;
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
                    .max_batch_jobs = std::max<size_t>(options.max_batch_jobs, 1),
                    .streams_are_alike = contexts.size() == 1,
                    .failpoint = "scheduler.job",
                    .quotas = options.quotas}),
      device_(device),
      max_batch_delay_(absl::ToChronoMicroseconds(options.max_batch_delay)),
      fenced_(FencedStatus(*device)),
      contexts_(std::move(contexts)),
      batches_(contexts_.size()) {
  for (auto& jobs : batches_) jobs.reserve(options_.max_batch_jobs);
  Start();
}

DeviceScheduler::~DeviceScheduler() { Stop(); }

absl::Status DeviceScheduler::Refusal() const {
  return device_->healthy() ? absl::OkStatus() : fenced_;
}

void DeviceScheduler::Run(size_t stream, DequeuedJobs& dequeued) {
  ExecutionContext& context = *contexts_[stream];
  JobBatcher* const batcher = AsJob(dequeued.jobs.front()).batcher;
  if (batcher == nullptr) return static_cast<Job&>(*dequeued.jobs.front()).Run(context);
  std::vector<std::shared_ptr<Job>>& jobs = batches_[stream];
  for (const auto& job : dequeued.jobs) jobs.push_back(std::static_pointer_cast<Job>(job));
  dequeued.jobs.clear();
  batcher->Run(context, jobs, dequeued.waited);
  jobs.clear();
}

std::optional<DeviceScheduler::Clock::time_point> DeviceScheduler::Choose(size_t stream,
                                                                          DequeuedJobs& dequeued) {
  const std::optional<Queue::Position> first = Startable(stream, SteadyNow());
  if (!first) return EndOfBatchDelay(stream);
  DequeueBatch(*first, dequeued);
  return std::nullopt;
}

std::optional<DeviceScheduler::Clock::time_point> DeviceScheduler::EndOfBatchDelay(
    size_t stream) const {
  std::optional<Clock::time_point> end;
  queue_.ForEach([&](const std::shared_ptr<QueuedJob>& job) {
    if (!MayRun(stream, *job)) return;
    const Clock::time_point delay_end = job->submitted() + max_batch_delay_;
    end = end ? std::min(*end, delay_end) : delay_end;
  });
  return end;
}

bool DeviceScheduler::MayRun(size_t stream, const QueuedJob& job) const {
  return contexts_.size() == 1 || stream != kSmallStream || job.predicted_seconds <= kSmallSeconds;
}

bool DeviceScheduler::IsBatchFilling(const Job& first, Clock::time_point now) const {
  if (first.batcher == nullptr || streams_busy_ == 0 ||
      now >= first.submitted() + max_batch_delay_) {
    return false;
  }
  return BatchSize(first) < options_.max_batch_jobs;
}

size_t DeviceScheduler::BatchSize(const Job& job) const {
  size_t size = 0;
  queue_.ForEach([&](const std::shared_ptr<QueuedJob>& queued) {
    const Job& other = AsJob(queued);
    if (other.batcher == job.batcher && other.group == job.group) ++size;
  });
  return size;
}

bool DeviceScheduler::NeedsSignal(const QueuedJob& queued) const {
  const Job& job = static_cast<const Job&>(queued);
  if (job.batcher == nullptr || !awaiting_since_ || streams_busy_ == 0) return true;
  const size_t size = BatchSize(job);
  return size == 1 || size >= options_.max_batch_jobs;
}

std::optional<DeviceScheduler::Queue::Position> DeviceScheduler::Startable(size_t stream,
                                                                           Clock::time_point now) {
  const auto first =
      queue_.Find([&](const std::shared_ptr<QueuedJob>& job) { return MayRun(stream, *job); });
  // The job for which a stream waited may have been cancelled.
  if (!first || AsJob(first->entry->item).batcher == nullptr) awaiting_since_.reset();
  if (!first || !IsBatchFilling(AsJob(first->entry->item), now)) return first;
  if (!awaiting_since_) awaiting_since_ = now;
  return queue_.Find([&](const std::shared_ptr<QueuedJob>& job) {
    return MayRun(stream, *job) &&
           (AsJob(job).batcher == nullptr || now >= job->submitted() + max_batch_delay_);
  });
}

void DeviceScheduler::DequeueBatch(Queue::Position first, DequeuedJobs& dequeued) {
  const JobBatcher* const batcher = AsJob(first.entry->item).batcher;
  const int group = AsJob(first.entry->item).group;
  Dequeue(first, dequeued);
  if (batcher == nullptr) return;
  if (awaiting_since_)
    dequeued.waited = SteadyNow() - *std::exchange(awaiting_since_, std::nullopt);
  while (dequeued.jobs.size() < options_.max_batch_jobs) {
    const auto next = queue_.Find([&](const std::shared_ptr<QueuedJob>& job) {
      return AsJob(job).batcher == batcher && AsJob(job).group == group;
    });
    if (!next) return;
    Dequeue(*next, dequeued);
  }
}

}  // namespace crout
