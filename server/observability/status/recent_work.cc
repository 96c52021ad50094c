// SPDX-License-Identifier: Apache-2.0

#include "server/observability/status/recent_work.h"

#include <algorithm>
#include <utility>

#include "kernels/util/clock.h"

namespace crout {

IterationRun PoolIterations(const IterationReport& report) {
  IterationRun run;
  run.warm = report.warm;
  run.section_size = report.section_size;
  run.sections = report.sections;
  run.total_sweeps = report.total_sweeps;
  run.total_pivots = report.total_pivots;
  const int64_t sections = report.sections;
  if (static_cast<int64_t>(report.sweeps.size()) != sections * sections) return run;
  run.side = std::min(sections, IterationRun::kSide);
  run.cells.assign(static_cast<size_t>(run.side * run.side), 0);
  for (int64_t j = 0; j < sections; ++j) {
    int64_t* const column = run.cells.data() + j * run.side / sections * run.side;
    const int64_t* const sweeps = report.sweeps.data() + j * sections;
    for (int64_t i = 0; i < sections; ++i) {
      int64_t& cell = column[i * run.side / sections];
      cell = std::max(cell, sweeps[i]);
    }
  }
  return run;
}

void RecentWork::RemoveOld(absl::Time now) {
  std::erase_if(calls_, [&](const EndedCall& call) { return now - call.ended > kRecent; });
}

void RecentWork::Ended(double seconds, absl::FunctionRef<EndedCall()> describe) {
  const absl::Time now = WallNow();
  MutexLock lock(&mutex_);
  RemoveOld(now);
  if (calls_.size() == kSlowCalls) {
    if (seconds <= calls_.back().seconds) return;
    calls_.pop_back();
  }
  EndedCall call = describe();
  call.seconds = seconds;
  call.ended = now;
  const auto slower = [&](const EndedCall& other) { return other.seconds >= seconds; };
  calls_.insert(std::partition_point(calls_.begin(), calls_.end(), slower), std::move(call));
}

std::vector<EndedCall> RecentWork::SlowCalls() const {
  const absl::Time now = WallNow();
  std::vector<EndedCall> recent;
  MutexLock lock(&mutex_);
  for (const EndedCall& call : calls_) {
    if (now - call.ended <= kRecent) recent.push_back(call);
  }
  return recent;
}

void RecentWork::SetRun(IterationRun run) {
  MutexLock lock(&mutex_);
  run_ = std::move(run);
}

std::optional<IterationRun> RecentWork::run() const {
  MutexLock lock(&mutex_);
  return run_;
}

}  // namespace crout
