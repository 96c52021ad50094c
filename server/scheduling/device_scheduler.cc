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
      new DeviceScheduler(device, options, std::move(contexts)));
}

DeviceScheduler::DeviceScheduler(Device* device, const SchedulerOptions& options,
                                 std::vector<std::unique_ptr<ExecutionContext>> contexts)
    : device_(device),
      queue_capacity_(options.queue_capacity),
      gather_jobs_(std::max<size_t>(options.gather_jobs, 1)),
      gather_window_(options.gather_window),
      late_(DeadlineStatus()),
      fenced_(FencedStatus(*device)),
      contexts_(std::move(contexts)),
      streams_(contexts_.size()) {
  {
    MutexLock lock(&mutex_);
    candidates_.reserve(queue_capacity_);
    turns_.reserve(queue_capacity_);
  }
  MutexLock lock(&join_mutex_);
  for (size_t i = 0; i < contexts_.size(); ++i) threads_.emplace_back([this, i] { Work(i); });
  threads_.emplace_back([this] { Reap(); });
}

DeviceScheduler::~DeviceScheduler() { Stop(); }

absl::Status DeviceScheduler::Submit(std::shared_ptr<Job> job) {
  if (!device_->healthy()) return fenced_;
  // What the queue and its indexes are to hold, made before the first of them changes.
  job->submitted_ = SteadyNow();
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
  Taken taken;
  taken.jobs.reserve(gather_jobs_);
  while (Next(stream, taken)) {
    RunOrDrop(taken, *contexts_[stream]);
    taken.jobs.clear();  // What they hold is free before their stream counts as idle.
    MutexLock lock(&mutex_);
    streams_[stream].busy = false;
    --streams_busy_;
  }
}

const absl::Status* DeviceScheduler::ReasonToDrop(const Job& job) const {
  if (job.deadline <= SteadyNow()) return &late_;
  return device_->healthy() ? nullptr : &fenced_;
}

// On a fenced device the workers drop one queued job after the other.
void DeviceScheduler::RunOrDrop(Taken& taken, ExecutionContext& context) {
  const absl::Status failpoint = Failpoint("scheduler.job");
  std::erase_if(taken.jobs, [&](const std::shared_ptr<Job>& job) {
    const absl::Status* reason = failpoint.ok() ? ReasonToDrop(*job) : &failpoint;
    if (reason != nullptr) job->Drop(*reason);
    return reason != nullptr;
  });
  if (taken.jobs.empty()) return;
  JobGatherer* const gatherer = taken.jobs.front()->gatherer;
  if (gatherer == nullptr) return taken.jobs.front()->Run(context);
  gatherer->Run(context, taken.jobs, taken.waited);
}

bool DeviceScheduler::Next(size_t stream, Taken& taken) {
  MutexLock lock(&mutex_);
  while (true) {
    if (stopping_) return false;
    const Clock::time_point now = SteadyNow();
    const Queue::iterator first = Startable(now);
    if (first != queue_.end()) {
      TakeTogether(first, taken);
      break;
    }
    if (queue_.empty()) {
      work_.Wait(&mutex_);
    } else {
      work_.WaitUntil(&mutex_, queue_.front()->submitted_ + gather_window_);
    }
  }
  double predicted_seconds = 0;
  for (const std::shared_ptr<Job>& job : taken.jobs) predicted_seconds += job->predicted_seconds;
  streams_[stream] = {.busy = true, .start = SteadyNow(), .predicted_seconds = predicted_seconds};
  ++streams_busy_;
  // Whoever was told of the rest may be the one that goes away now.
  if (!queue_.empty()) work_.Signal();
  return true;
}

bool DeviceScheduler::AwaitsCompany(const Job& job, Clock::time_point now) const {
  if (job.gatherer == nullptr || streams_busy_ == 0 || now >= job.submitted_ + gather_window_) {
    return false;
  }
  const auto together =
      std::count_if(queue_.begin(), queue_.end(), [&](const std::shared_ptr<Job>& other) {
        return other->gatherer == job.gatherer && other->group == job.group;
      });
  return static_cast<size_t>(together) < gather_jobs_;
}

DeviceScheduler::Queue::iterator DeviceScheduler::Startable(Clock::time_point now) {
  if (queue_.empty() || !AwaitsCompany(*queue_.front(), now)) return queue_.begin();
  if (!awaiting_since_) awaiting_since_ = now;
  return std::find_if(queue_.begin(), queue_.end(),
                      [](const std::shared_ptr<Job>& job) { return job->gatherer == nullptr; });
}

void DeviceScheduler::TakeTogether(Queue::iterator first, Taken& taken) {
  taken.waited = {};
  const JobGatherer* const gatherer = (*first)->gatherer;
  if (gatherer == nullptr) return taken.jobs.push_back(Take(first));
  if (awaiting_since_) taken.waited = SteadyNow() - *std::exchange(awaiting_since_, std::nullopt);
  const int group = (*first)->group;
  candidates_.clear();
  turns_.clear();
  for (auto position = first; position != queue_.end(); ++position) {
    const Job& job = **position;
    if (job.gatherer != gatherer || job.group != group) continue;
    auto turn = std::find_if(turns_.begin(), turns_.end(),
                             [&](const auto& other) { return *other.first == job.tenant; });
    if (turn == turns_.end()) turn = turns_.insert(turn, {&job.tenant, 0});
    candidates_.push_back({turn->second++, candidates_.size(), position});
  }
  const size_t count = std::min(gather_jobs_, candidates_.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(count),
                    candidates_.end(), [](const Candidate& a, const Candidate& b) {
                      return std::pair(a.turn, a.place) < std::pair(b.turn, b.place);
                    });
  for (size_t k = 0; k < count; ++k) taken.jobs.push_back(Take(candidates_[k].position));
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
