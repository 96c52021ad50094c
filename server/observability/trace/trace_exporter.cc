// SPDX-License-Identifier: Apache-2.0

#include "server/observability/trace/trace_exporter.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <random>
#include <utility>

#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/thread.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

// Returns 16 hexadecimal digits, not all 0. The digits must be unique; they need not be secret.
std::string MakeSpanId() {
  thread_local std::mt19937_64 random(std::random_device{}());
  const uint64_t id = std::max<uint64_t>(random(), 1);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, id);
  return digits;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TraceExporter>> TraceExporter::Create(
    const std::string& endpoint, const TraceExporterOptions& options) {
  CROUT_ASSIGN_OR_RETURN(HttpUrl url, ParseHttpUrl(endpoint));
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  url.path += "/v1/traces";
  return std::unique_ptr<TraceExporter>(new TraceExporter(std::move(url), options));
}

TraceExporter::TraceExporter(HttpUrl url, const TraceExporterOptions& options)
    : options_(options),
      poster_(std::move(url)),
      next_retry_(options.retry),
      thread_(StartThread([this] { Work(); })) {}

TraceExporter::~TraceExporter() {
  const Clock::time_point end = SteadyNow() + options_.shutdown_timeout;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
    while (!done_ && SteadyNow() < end) wake_.WaitUntil(&mutex_, end);
  }
  poster_.Stop();
  thread_.join();
}

void TraceExporter::Add(TracedCall call) {
  MutexLock lock(&mutex_);
  if (waiting_.size() >= options_.capacity) return Drop(TraceDrop::kQueueFull, 1);
  if (waiting_.empty()) first_added_ = SteadyNow();
  waiting_.push_back(std::move(call));
  if (waiting_.size() == 1 || waiting_.size() == options_.batch) wake_.SignalAll();
}

std::vector<TracedCall> TraceExporter::Next() {
  MutexLock lock(&mutex_);
  while (!stopping_ && waiting_.empty()) wake_.Wait(&mutex_);
  const Clock::time_point due = first_added_ + options_.delay;
  while (!stopping_ && waiting_.size() < options_.batch && SteadyNow() < due) {
    wake_.WaitUntil(&mutex_, due);
  }
  const size_t count = std::min(waiting_.size(), options_.batch);
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<TracedCall> calls(std::make_move_iterator(waiting_.begin()),
                                std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return calls;
}

void TraceExporter::Work() {
  for (;;) {
    const std::vector<TracedCall> calls = Next();
    if (calls.empty()) break;  // stopping, and the queue is empty
    bool sent = false;
    AbandonOnBadAlloc([&] { sent = Send(calls); });
    if (sent) {
      exported_ += calls.size();
      continue;
    }
    Drop(TraceDrop::kSendFailed, calls.size());
    if (BackOff()) break;
  }
  MutexLock lock(&mutex_);
  done_ = true;
  wake_.SignalAll();
}

bool TraceExporter::Send(const std::vector<TracedCall>& calls) {
  const absl::Status status =
      poster_.Post("application/json", OtlpJson(calls, MakeSpanId), options_.timeout);
  if (status.ok() == failing_) {
    failing_ = !failing_;
    if (failing_) {
      Log(LogLevel::kWarn, "traces_failed", {{"reason", std::string(status.message())}});
    } else {
      Log(LogLevel::kInfo, "traces_taken");
    }
  }
  if (status.ok()) next_retry_ = options_.retry;
  return status.ok();
}

bool TraceExporter::BackOff() {
  const Clock::time_point end = SteadyNow() + next_retry_;
  next_retry_ = std::min(2 * next_retry_, options_.max_retry);
  MutexLock lock(&mutex_);
  while (!stopping_ && SteadyNow() < end) wake_.WaitUntil(&mutex_, end);
  return stopping_;
}

}  // namespace crout
