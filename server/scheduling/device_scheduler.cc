#include "server/scheduling/device_scheduler.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/failpoint.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

using Clock = Job::Clock;

constexpr std::chrono::hours kLongestWait{
    1};  // Far deadlines would overflow the clock's arithmetic.
constexpr double kShortestRetrySeconds = 0.01;

absl::Status DeadlineStatus() {
  return absl::DeadlineExceededError("the deadline passed while the job was queued");
}

absl::Status FencedStatus(const Device& device) {
  return WithReason(
      absl::UnavailableError(absl::StrCat("device ", device.info().name, " was lost")),
      kReasonDeviceLost);
}

absl::Status StoppedStatus() {
  return WithReason(absl::UnavailableError("the server is shutting down"), kReasonDraining);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceScheduler>> DeviceScheduler::Create(
    Device* device, const SchedulerOptions& options) {
  const int streams = options.streams == 0 ? device->info().parallelism : options.streams;
  if (streams < 1) return absl::InvalidArgumentError("a device needs at least one stream");
  std::vector<std::unique_ptr<ExecutionContext>> contexts;
  for (int i = 0; i < streams; ++i) {
    auto context = device->CreateContext();
    if (!context.ok()) return context.status();
    contexts.push_back(*std::move(context));
  }
  return std::unique_ptr<DeviceScheduler>(
      new DeviceScheduler(device, options.queue_capacity, std::move(contexts)));
}

DeviceScheduler::DeviceScheduler(Device* device, size_t queue_capacity,
                                 std::vector<std::unique_ptr<ExecutionContext>> contexts)
    : device_(device),
      queue_capacity_(queue_capacity),
      late_(DeadlineStatus()),
      fenced_(FencedStatus(*device)),
      contexts_(std::move(contexts)),
      streams_(contexts_.size()) {
  MutexLock lock(&join_mutex_);
  for (size_t i = 0; i < contexts_.size(); ++i) threads_.emplace_back([this, i] { Work(i); });
  threads_.emplace_back([this] { Reap(); });
}

DeviceScheduler::~DeviceScheduler() { Stop(); }

absl::Status DeviceScheduler::Submit(std::shared_ptr<Job> job) {
  if (!device_->healthy()) return fenced_;
  // What the queue and its indexes are to hold, made before the first of them changes.
  Deadlines deadlines;
  if (job->deadline != Clock::time_point::max()) deadlines.emplace(job->deadline, job.get());
  Queue queued(1, std::move(job));
  const Job& added = *queued.front();
  bool wake_reaper = false;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return StoppedStatus();
    if (queue_.size() >= queue_capacity_) {
      return WithRetryAfter(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                           "the queue of ", device_->info().name, " is full")),
                                       kReasonQueueFull),
                            std::max(kShortestRetrySeconds, BacklogSeconds()));
    }
    positions_.emplace(&added, queued.begin());
    // From here on nothing can fail.
    wake_reaper = !deadlines.empty() && added.deadline < reap_at_;
    deadlines_.merge(deadlines);
    queued_seconds_ += added.predicted_seconds;
    queue_.splice(queue_.end(), queued);
  }
  work_.Signal();
  if (wake_reaper) reap_.Signal();
  return absl::OkStatus();
}

bool DeviceScheduler::Remove(const Job* job) {
  std::shared_ptr<Job> taken;  // Its last reference may go here: outside the lock.
  MutexLock lock(&mutex_);
  const auto position = positions_.find(job);
  if (position == positions_.end()) return false;
  taken = Take(position->second);
  return true;
}

size_t DeviceScheduler::JobsAhead(const Job* job) const {
  MutexLock lock(&mutex_);
  const auto position = positions_.find(job);
  if (position == positions_.end()) return 0;
  return std::distance(queue_.begin(), Queue::const_iterator(position->second));
}

DeviceScheduler::Load DeviceScheduler::load() const {
  MutexLock lock(&mutex_);
  return {.streams = static_cast<int>(streams_.size()),
          .streams_busy = streams_busy_,
          .queue_depth = queue_.size(),
          .backlog_seconds = BacklogSeconds(),
          .work_seconds = WorkSeconds()};
}

double DeviceScheduler::BacklogSeconds() const {
  const bool idle = queue_.empty() && streams_busy_ < static_cast<int>(streams_.size());
  return idle ? 0 : WorkSeconds();
}

double DeviceScheduler::WorkSeconds() const {
  const auto now = SteadyNow();
  double seconds = queued_seconds_;
  for (const Stream& stream : streams_) {
    if (!stream.busy) continue;
    const std::chrono::duration<double> elapsed = now - stream.start;
    seconds += std::max(0.0, stream.predicted_seconds - elapsed.count());
  }
  return seconds / static_cast<double>(streams_.size());
}

void DeviceScheduler::Stop() {
  std::vector<std::shared_ptr<Job>> dropped;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    while (!queue_.empty()) dropped.push_back(Take(queue_.begin()));
  }
  work_.SignalAll();
  reap_.SignalAll();
  for (auto& job : dropped) std::exchange(job, nullptr)->Drop(StoppedStatus());
  MutexLock lock(&join_mutex_);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void DeviceScheduler::Work(size_t stream) {
  while (std::shared_ptr<Job> job = Next(stream)) {
    RunOrDrop(*job, *contexts_[stream]);
    job.reset();  // What it holds is free before its stream counts as idle.
    MutexLock lock(&mutex_);
    streams_[stream].busy = false;
    --streams_busy_;
  }
}

// On a fenced device the workers drop one queued job after the other.
void DeviceScheduler::RunOrDrop(Job& job, ExecutionContext& context) {
  absl::Status failpoint = Failpoint("scheduler.job");
  if (!failpoint.ok()) {
    job.Drop(std::move(failpoint));
  } else if (job.deadline <= SteadyNow()) {
    job.Drop(late_);
  } else if (!device_->healthy()) {
    job.Drop(fenced_);
  } else {
    job.Run(context);
  }
}

std::shared_ptr<Job> DeviceScheduler::Next(size_t stream) {
  MutexLock lock(&mutex_);
  while (!stopping_ && queue_.empty()) work_.Wait(&mutex_);
  if (stopping_) return nullptr;
  std::shared_ptr<Job> job = Take(queue_.begin());
  streams_[stream] = {
      .busy = true, .start = SteadyNow(), .predicted_seconds = job->predicted_seconds};
  ++streams_busy_;
  return job;
}

void DeviceScheduler::Reap() {
  while (const std::shared_ptr<Job> job = WaitForLate()) {
    GoOnWithoutMemory([&] { job->Drop(late_); });
  }
}

std::shared_ptr<Job> DeviceScheduler::WaitForLate() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    const auto now = SteadyNow();
    if (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      return Take(positions_.find(deadlines_.begin()->second)->second);
    }
    if (deadlines_.empty()) {
      reap_at_ = Clock::time_point::max();
      reap_.Wait(&mutex_);
    } else {
      reap_at_ = std::min(deadlines_.begin()->first, now + kLongestWait);
      reap_.WaitUntil(&mutex_, reap_at_);
    }
  }
  return nullptr;
}

std::shared_ptr<Job> DeviceScheduler::Take(Queue::iterator position) noexcept {
  std::shared_ptr<Job> job = std::move(*position);
  queue_.erase(position);
  positions_.erase(job.get());
  deadlines_.erase({job->deadline, job.get()});
  // Exactly zero again once empty: sums of doubles drift.
  queued_seconds_ = queue_.empty() ? 0 : queued_seconds_ - job->predicted_seconds;
  return job;
}

}  // namespace crout
