// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/call_registry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "server/engine/error.h"

namespace crout {

CallRegistry::Ticket::~Ticket() {
  if (registry_ != nullptr) registry_->Leave(id_);
}

CallRegistry::Ticket::Ticket(Ticket&& other) noexcept
    : registry_(std::exchange(other.registry_, nullptr)), id_(other.id_) {}

CallRegistry::Ticket& CallRegistry::Ticket::operator=(Ticket&& other) noexcept {
  std::swap(registry_, other.registry_);
  std::swap(id_, other.id_);
  return *this;
}

absl::StatusOr<CallRegistry::Ticket> CallRegistry::Enter(std::weak_ptr<LiveCall> call) {
  MutexLock lock(&mutex_);
  if (closed_) {
    return WithReason(absl::UnavailableError("the server is draining: use another server"),
                      kReasonDraining);
  }
  const uint64_t id = next_id_++;
  calls_.emplace(id, std::move(call));
  return Ticket(this, id);
}

void CallRegistry::Leave(uint64_t id) {
  MutexLock lock(&mutex_);
  calls_.erase(id);
  if (calls_.empty()) empty_.SignalAll();
}

void CallRegistry::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
}

bool CallRegistry::WaitUntilEmpty(LiveCall::Clock::time_point deadline,
                                  const std::function<bool()>& interrupted) {
  constexpr auto kPoll = std::chrono::milliseconds(50);  // `interrupted` reads a signal flag
  MutexLock lock(&mutex_);
  while (!calls_.empty()) {
    const auto now = SteadyNow();
    if (now >= deadline || interrupted()) return false;
    empty_.WaitUntil(&mutex_, std::min(deadline, now + kPoll));
  }
  return true;
}

std::vector<std::shared_ptr<LiveCall>> CallRegistry::Snapshot() const {
  std::vector<std::shared_ptr<LiveCall>> live;
  MutexLock lock(&mutex_);
  // Reserve first. If push_back() had to allocate and failed, the last reference to a call could be
  // dropped with the mutex held, and its ticket would lock the mutex again.
  live.reserve(calls_.size());
  for (const auto& [id, weak] : calls_) {
    if (auto call = weak.lock()) live.push_back(std::move(call));
  }
  return live;
}

void CallRegistry::AbortAll(const absl::Status& status) {
  for (const auto& call : Snapshot()) call->Abort(status);
}

void CallRegistry::EnforceLimits(LiveCall::Clock::time_point now) {
  for (const auto& call : Snapshot()) {
    AbandonOnBadAlloc([&] { call->EnforceLimits(now); });  // continue with the other calls
  }
}

std::vector<OpenCall> CallRegistry::Oldest(size_t count) const {
  std::vector<std::shared_ptr<LiveCall>> oldest;
  oldest.reserve(count);  // see Snapshot()
  {
    MutexLock lock(&mutex_);
    std::vector<uint64_t> ids;
    ids.reserve(calls_.size());
    for (const auto& [id, weak] : calls_) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    for (const uint64_t id : ids) {
      if (oldest.size() == count) break;
      if (auto call = calls_.at(id).lock()) oldest.push_back(std::move(call));
    }
  }
  std::vector<OpenCall> described;
  for (const auto& call : oldest) described.push_back(call->Describe());
  return described;
}

size_t CallRegistry::in_flight() const {
  MutexLock lock(&mutex_);
  return calls_.size();
}

uint64_t CallRegistry::entered() const {
  MutexLock lock(&mutex_);
  return next_id_ - 1;
}

}  // namespace crout
