// SPDX-License-Identifier: Apache-2.0

#include "server/engine/scheduling/job_scheduler.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/thread.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// Longest single wait. Waiting for a far deadline could overflow the clock's arithmetic.
constexpr std::chrono::hours kLongestWait{1};
constexpr double kShortestRetrySeconds = 0.01;
constexpr double kDisplacedRetrySeconds = 1;
// Limits of the seconds that a job costs its tenant. The least is the work around a job.
constexpr double kLeastCost = 1e-4;
constexpr double kMostCost = 1e6;

double CostOf(double seconds) {
  return seconds > kLeastCost ? std::min(seconds, kMostCost) : kLeastCost;
}

absl::Status DeadlineStatus() {
  return absl::DeadlineExceededError("the deadline passed while the job was queued");
}

absl::Status DisplacedStatus(const std::string& name) {
  return WithRetryAfter(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                       "the queue of ", name,
                                       " is full, and a tenant with fewer queued jobs took the "
                                       "place of this job. Try again later")),
                                   kReasonQueueFull),
                        kDisplacedRetrySeconds);
}

absl::Status StoppedStatus() {
  return WithReason(absl::UnavailableError("the server is shutting down. Retry on another server"),
                    kReasonDraining);
}

}  // namespace

JobScheduler::JobScheduler(Options options)
    : options_(std::move(options)),
      deadline_status_(DeadlineStatus()),
      displaced_status_(DisplacedStatus(options_.name)),
      streams_(options_.streams) {}

void JobScheduler::Start() {
  try {
    MutexLock lock(&join_mutex_);
    threads_.reserve(options_.streams + 1);
    for (size_t i = 0; i < options_.streams; ++i) {
      threads_.push_back(StartThread([this, i] { Work(i); }));
    }
    threads_.push_back(StartThread([this] { Reap(); }));
  } catch (const std::system_error&) {
    Stop();
    throw;
  }
}

absl::Status JobScheduler::Enqueue(std::shared_ptr<QueuedJob> job) {
  if (absl::Status refusal = Refusal(); !refusal.ok()) return refusal;
  // Allocate the entries of the indexes before any index changes.
  job->submitted_ = SteadyNow();
  const QueuedJob& added = *job;
  Deadlines deadlines;
  if (added.deadline != Clock::time_point::max()) deadlines.emplace(added.deadline, &added);
  std::list<std::shared_ptr<QueuedJob>> displaced;
  const QuotaLimits limits = LimitsOf(added.tenant);
  bool wake_stream = true;
  bool wake_reaper = false;
  {
    MutexLock lock(&mutex_);
    CROUT_ASSIGN_OR_RETURN(const std::optional<Queue::Position> victim,
                           FindRoom(added.tenant, limits));
    if (victim) displaced.emplace_back();
    const auto entry = positions_.try_emplace(&added).first;
    try {
      entry->second =
          queue_.Add(added.tenant, std::move(job), CostOf(added.predicted_seconds), added.priority);
    } catch (const std::bad_alloc&) {
      positions_.erase(entry);
      throw;
    }
    // Nothing below this line can fail.
    queue_.LimitService(entry->second.tenant, static_cast<size_t>(limits.running_jobs));
    if (victim) {
      displaced.front() = RemoveFromQueue(*victim);
      displaced_.splice(displaced_.end(), displaced);
    }
    wake_reaper = victim || (!deadlines.empty() && added.deadline < reap_at_);
    deadlines_.merge(deadlines);
    queued_seconds_ += added.predicted_seconds;
    wake_stream = NeedsSignal(added);
  }
  if (wake_stream) work_.Signal();
  if (wake_reaper) reap_.Signal();
  return absl::OkStatus();
}

absl::Status JobScheduler::CheckRoom(const std::string& tenant) const {
  const QuotaLimits limits = LimitsOf(tenant);
  MutexLock lock(&mutex_);
  return FindRoom(tenant, limits).status();
}

QuotaLimits JobScheduler::LimitsOf(const std::string& tenant) const {
  return options_.quotas == nullptr ? QuotaLimits() : options_.quotas->Of(tenant);
}

absl::StatusOr<std::optional<JobScheduler::Queue::Position>> JobScheduler::FindRoom(
    const std::string& tenant, const QuotaLimits& limits) const {
  if (stopping_) return StoppedStatus();
  CROUT_RETURN_IF_ERROR(CheckQueued(tenant, limits.queued_jobs));
  if (queue_.size() < options_.queue_capacity) return std::nullopt;
  std::optional<Queue::Position> displaced = queue_.Displaced(tenant);
  if (!displaced) return FullStatus();
  return displaced;
}

absl::Status JobScheduler::FullStatus() const {
  return WithRetryAfter(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                       "the queue of ", options_.name, " is full (",
                                       options_.queue_capacity, " waiting): try again later")),
                                   kReasonQueueFull),
                        std::max(kShortestRetrySeconds, BacklogSeconds()));
}

absl::Status JobScheduler::CheckQueued(const std::string& tenant, int64_t limit) const {
  const size_t queued = queue_.Queued(tenant);
  if (queued < static_cast<size_t>(limit)) return absl::OkStatus();
  return QuotaExceeded(tenant, "queued_jobs",
                       absl::StrCat(queued, " of its jobs wait in the queue of ", options_.name),
                       absl::StrCat(limit), "Try again later",
                       std::max(kShortestRetrySeconds, BacklogSeconds()));
}

JobScheduler::TenantJobs JobScheduler::JobsOf(std::string_view tenant) const {
  MutexLock lock(&mutex_);
  return {queue_.Queued(tenant), queue_.InService(tenant), used_seconds_.Of(tenant)};
}

double JobScheduler::used_seconds() const {
  MutexLock lock(&mutex_);
  return used_seconds_.all();
}

bool JobScheduler::Remove(const QueuedJob* job) {
  // Declared before the lock: if this is the last reference, the job is destroyed without the lock.
  std::shared_ptr<QueuedJob> removed;
  MutexLock lock(&mutex_);
  const auto position = positions_.find(job);
  if (position == positions_.end()) return false;
  removed = RemoveFromQueue(position->second);
  return true;
}

size_t JobScheduler::JobsAhead(const QueuedJob* job) const {
  MutexLock lock(&mutex_);
  const auto position = positions_.find(job);
  return position == positions_.end() ? 0 : queue_.Ahead(position->second);
}

JobScheduler::Load JobScheduler::load() const {
  MutexLock lock(&mutex_);
  return {.streams = static_cast<int>(streams_.size()),
          .streams_busy = streams_busy_,
          .queue_depth = queue_.size(),
          .backlog_seconds = BacklogSeconds(),
          .work_seconds = WorkSeconds()};
}

double JobScheduler::BacklogSeconds() const {
  // The stream for small jobs does not count.
  const int general = static_cast<int>(streams_.size()) - (options_.streams_are_alike ? 0 : 1);
  const bool idle = queue_.empty() && streams_busy_ < general;
  return idle ? 0 : WorkSeconds();
}

double JobScheduler::WorkSeconds() const {
  const auto now = SteadyNow();
  double seconds = queued_seconds_;
  for (const Stream& stream : streams_) {
    if (!stream.busy) continue;
    const std::chrono::duration<double> elapsed = now - stream.start;
    seconds += std::max(0.0, stream.predicted_seconds - elapsed.count());
  }
  return seconds / static_cast<double>(streams_.size());
}

void JobScheduler::Stop() {
  std::vector<std::shared_ptr<QueuedJob>> dropped;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    while (const auto position = queue_.First()) dropped.push_back(RemoveFromQueue(*position));
    for (auto& job : displaced_) dropped.push_back(std::move(job));
    displaced_.clear();
  }
  work_.SignalAll();
  reap_.SignalAll();
  for (auto& job : dropped) std::exchange(job, nullptr)->Drop(StoppedStatus());
  MutexLock lock(&join_mutex_);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void JobScheduler::Work(size_t stream) {
  DequeuedJobs dequeued;
  dequeued.jobs.reserve(options_.max_batch_jobs);
  dequeued.charges.reserve(options_.max_batch_jobs);
  while (Next(stream, dequeued)) {
    RunOrDrop(stream, dequeued);
    dequeued.jobs.clear();  // Frees the resources of the jobs before the stream counts as idle.
    MutexLock lock(&mutex_);
    CorrectCharges(stream, dequeued);
    streams_[stream].busy = false;
    --streams_busy_;
  }
}

void JobScheduler::CorrectCharges(size_t stream, DequeuedJobs& dequeued) {
  const std::chrono::duration<double> elapsed = SteadyNow() - streams_[stream].start;
  double charged = 0;
  for (const DequeuedJobs::Charge& charge : dequeued.charges) charged += charge.seconds;
  for (const DequeuedJobs::Charge& charge : dequeued.charges) {
    const double seconds = elapsed.count() * charge.seconds / charged;
    const std::string& tenant = Queue::NameOf(charge.tenant);
    if (options_.quotas != nullptr) options_.quotas->Charge(tenant, seconds);
    used_seconds_.Add(tenant, seconds);
    queue_.End(charge.tenant, charge.priority, CostOf(seconds) - charge.seconds);
  }
  dequeued.charges.clear();
}

// On a fenced device, the threads dequeue and drop all queued jobs in this way.
void JobScheduler::RunOrDrop(size_t stream, DequeuedJobs& dequeued) {
  absl::Status refusal = Failpoint(options_.failpoint);
  if (refusal.ok()) refusal = Refusal();
  std::erase_if(dequeued.jobs, [&](const std::shared_ptr<QueuedJob>& job) {
    const bool late = job->deadline <= SteadyNow();
    if (!late && refusal.ok()) return false;
    job->Drop(late ? deadline_status_ : refusal);
    return true;
  });
  if (!dequeued.jobs.empty()) Run(stream, dequeued);
}

bool JobScheduler::Next(size_t stream, DequeuedJobs& dequeued) {
  MutexLock lock(&mutex_);
  while (true) {
    if (stopping_) return false;
    dequeued.waited = {};
    const std::optional<Clock::time_point> again = Choose(stream, dequeued);
    if (!dequeued.jobs.empty()) break;
    // The signal may have been for a job that only another stream may run.
    if (HasJobsForOthers(stream)) work_.Signal();
    if (again) {
      work_.WaitUntil(&mutex_, *again);
    } else {
      work_.Wait(&mutex_);
    }
  }
  double predicted_seconds = 0;
  for (const auto& job : dequeued.jobs) predicted_seconds += job->predicted_seconds;
  streams_[stream] = {.busy = true, .start = SteadyNow(), .predicted_seconds = predicted_seconds};
  ++streams_busy_;
  // This stream may have consumed the signal that was sent for the jobs still queued.
  if (!queue_.empty()) work_.Signal();
  return true;
}

bool JobScheduler::HasJobsForOthers(size_t stream) {
  if (stream != kSmallStream || options_.streams_are_alike) return false;
  const auto other =
      queue_.Find([&](const std::shared_ptr<QueuedJob>& job) { return !MayRun(stream, *job); });
  return other.has_value();
}

void JobScheduler::Dequeue(Queue::Position position, DequeuedJobs& dequeued) {
  const QueuedJob& job = *position.entry->item;
  dequeued.charges.push_back({position.tenant, job.priority, position.entry->cost});
  dequeued.jobs.push_back(queue_.Begin(position));
  RemoveFromIndexes(job);
}

void JobScheduler::Reap() {
  while (true) {
    const Dropped dropped = WaitForDropped();
    if (dropped.job == nullptr) return;
    AbandonOnBadAlloc([&] { dropped.job->Drop(dropped.status); });
  }
}

JobScheduler::Dropped JobScheduler::WaitForDropped() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    if (!displaced_.empty()) {
      Dropped dropped{std::move(displaced_.front()), displaced_status_};
      displaced_.pop_front();
      return dropped;
    }
    const auto now = SteadyNow();
    if (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      return {RemoveFromQueue(positions_.find(deadlines_.begin()->second)->second),
              deadline_status_};
    }
    if (deadlines_.empty()) {
      reap_at_ = Clock::time_point::max();
      reap_.Wait(&mutex_);
    } else {
      reap_at_ = std::min(deadlines_.begin()->first, now + kLongestWait);
      reap_.WaitUntil(&mutex_, reap_at_);
    }
  }
  return {};
}

std::shared_ptr<QueuedJob> JobScheduler::RemoveFromQueue(Queue::Position position) noexcept {
  std::shared_ptr<QueuedJob> job = queue_.Remove(position);
  RemoveFromIndexes(*job);
  return job;
}

void JobScheduler::RemoveFromIndexes(const QueuedJob& job) noexcept {
  positions_.erase(&job);
  deadlines_.erase({job.deadline, &job});
  // Reset to exactly zero when the queue is empty, because rounding errors accumulate in the sum.
  queued_seconds_ = queue_.empty() ? 0 : queued_seconds_ - job.predicted_seconds;
}

double JobTicket::EndWork(Clock::time_point now) {
  --working_;
  if (working_ > 0 || !wasting_since_) return 0;
  return std::chrono::duration<double>(now - *std::exchange(wasting_since_, std::nullopt)).count();
}

void JobTicket::Abandon(Clock::time_point now) {
  if (job_ != nullptr && scheduler_->Remove(job_.get())) job_.reset();
  if (working_ > 0 && !wasting_since_) wasting_since_ = now;
}

}  // namespace crout
