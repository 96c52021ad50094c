// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/request_ids.h"

namespace crout {

RequestIds::Node::Node(std::string_view tenant, std::string_view request_id) {
  if (!request_id.empty()) request_.try_emplace(Key(tenant, request_id));
}

RequestIds::EndedClaim::~EndedClaim() {
  for (const auto& [key, weak] : waiters_) {
    if (const auto waiter = weak.lock()) waiter->OnClaimEnded();
  }
}

RequestIds::Found RequestIds::Claim(std::string_view tenant, std::string_view request_id) {
  MutexLock lock(&mutex_);
  const auto [request, is_new] = requests_.try_emplace(Key(tenant, request_id));
  if (is_new) return {State::kFree, std::nullopt};
  const std::optional<Handle>& factor = request->second.factor;
  return {factor ? State::kHasFactor : State::kClaimed, factor};
}

bool RequestIds::Reclaim(std::string_view tenant, std::string_view request_id,
                         const Handle& removed) noexcept {
  MutexLock lock(&mutex_);
  const auto request = requests_.find(View(tenant, request_id));
  if (request == requests_.end() || request->second.factor != removed) return false;
  request->second.factor.reset();
  return true;
}

RequestIds::EndedClaim RequestIds::Complete(Node allocated, const Handle& factor) noexcept {
  EndedClaim ended;
  if (allocated.request_.empty()) return ended;
  auto node = allocated.request_.extract(allocated.request_.begin());
  MutexLock lock(&mutex_);
  Request& request = requests_.insert(std::move(node)).position->second;
  request.factor = factor;
  ended.waiters_.swap(request.waiters);
  return ended;
}

void RequestIds::Abandon(std::string_view tenant, std::string_view request_id) noexcept {
  EndedClaim ended;  // destroyed after the lock
  MutexLock lock(&mutex_);
  const auto request = requests_.find(View(tenant, request_id));
  if (request == requests_.end() || request->second.factor) return;
  ended.waiters_.swap(request->second.waiters);
  requests_.erase(request);
}

void RequestIds::Remove(std::string_view tenant, std::string_view request_id,
                        const Handle& factor) noexcept {
  MutexLock lock(&mutex_);
  const auto request = requests_.find(View(tenant, request_id));
  if (request != requests_.end() && request->second.factor == factor) requests_.erase(request);
}

bool RequestIds::Await(std::string_view tenant, std::string_view request_id,
                       const std::shared_ptr<RequestWaiter>& waiter) {
  MutexLock lock(&mutex_);
  const auto request = requests_.find(View(tenant, request_id));
  if (request == requests_.end() || request->second.factor) return false;
  request->second.waiters.emplace(waiter.get(), waiter);
  return true;
}

void RequestIds::StopAwaiting(std::string_view tenant, std::string_view request_id,
                              const RequestWaiter* waiter) noexcept {
  MutexLock lock(&mutex_);
  const auto request = requests_.find(View(tenant, request_id));
  if (request != requests_.end()) request->second.waiters.erase(waiter);
}

bool RequestIds::IsAwaited(std::string_view tenant, std::string_view request_id) const {
  MutexLock lock(&mutex_);
  const auto request = requests_.find(View(tenant, request_id));
  return request != requests_.end() && !request->second.waiters.empty();
}

}  // namespace crout
