// SPDX-License-Identifier: Apache-2.0

// The bytes of one tenant in one memory, and an order of tenants by their bytes.
#ifndef CROUT_SERVER_ENGINE_CACHE_TENANT_SHARE_H_
#define CROUT_SERVER_ENGINE_CACHE_TENANT_SHARE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "server/engine/cache/list_node.h"

namespace crout {

struct CachedVersion;
class ReservationOwner;

// The mutex of TieredStore guards all members, except the first.
struct TenantShare {
  struct ByExcess {
    bool operator()(const TenantShare* a, const TenantShare* b) const {
      return std::tuple(a->Excess(), a->tenant) < std::tuple(b->Excess(), b->tenant);
    }
  };
  // Smallest Excess() first; ties are ordered by name.
  using Order = std::set<TenantShare*, ByExcess>;

  // `tenant_name` outlives the share. May throw std::bad_alloc.
  explicit TenantShare(std::string_view tenant_name) : tenant(tenant_name) {
    Order order;
    node = order.extract(order.insert(this).first);
  }
  TenantShare(const TenantShare&) = delete;  // Its node points to it.
  TenantShare& operator=(const TenantShare&) = delete;

  // Leave() removes the share from `order` if it is there. Join() adds it if it has idle versions.
  // Neither allocates. Call Leave() before a change of the members below and Join() after it
  // (UpdateShare()).
  void Leave(Order& order) noexcept {
    if (node.empty()) node = order.extract(this);
  }
  void Join(Order& order) noexcept {
    if (!idle.empty()) order.insert(std::move(node));
  }

  // Bytes above the configured share; all bytes without one.
  int64_t Excess() const {
    return static_cast<int64_t>(bytes) - static_cast<int64_t>(configured.value_or(0));
  }

  const std::string_view tenant;
  std::optional<size_t> configured;  // bytes of the share; nothing: an equal share
  size_t bytes = 0;                  // reserved for the tenant: its versions, jobs and uploads
  std::list<CachedVersion*> idle;    // least recently used first
  size_t idle_bytes = 0;

  size_t cached_bytes = 0;  // part of `bytes` in cached objects; the rest is held by jobs
  // The most bytes that jobs of the tenant had or requested recently. They are kept for its jobs
  // until `kept_until`.
  size_t kept_bytes = 0;
  std::chrono::steady_clock::time_point kept_until;
  // Position among the shares of the memory with kept bytes. `keeper` then keeps the share alive,
  // else it is null.
  ListNode<TenantShare> recent{this};
  std::shared_ptr<ReservationOwner> keeper;

 private:
  Order::node_type node;  // empty while an order contains the share
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TENANT_SHARE_H_
