// SPDX-License-Identifier: Apache-2.0

// The bytes of one tenant in one memory, and an order of tenants by their bytes.
#ifndef CROUT_SERVER_ENGINE_CACHE_TENANT_SHARE_H_
#define CROUT_SERVER_ENGINE_CACHE_TENANT_SHARE_H_

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "server/engine/cache/list_node.h"

namespace crout {

struct CachedVersion;
class ReservationOwner;

// The mutex of TieredStore guards all members, except the first.
struct TenantShare {
  struct ByBytes {
    bool operator()(const TenantShare* a, const TenantShare* b) const {
      return std::tie(a->bytes, a->tenant) < std::tie(b->bytes, b->tenant);
    }
  };
  // Fewest bytes first; ties are ordered by name.
  using Order = std::set<TenantShare*, ByBytes>;

  // `tenant_name` outlives the share. May throw std::bad_alloc.
  explicit TenantShare(std::string_view tenant_name) : tenant(tenant_name) {
    Order order;
    node = order.extract(order.insert(this).first);
  }
  TenantShare(const TenantShare&) = delete;  // Its node points to it.
  TenantShare& operator=(const TenantShare&) = delete;

  // Runs `change`, which may change the members below, and updates `order`, which contains the
  // shares with idle versions. Allocates nothing.
  void Reorder(Order& order, absl::FunctionRef<void()> change) noexcept {
    if (node.empty()) node = order.extract(this);
    change();
    if (!idle.empty()) order.insert(std::move(node));
  }

  const std::string_view tenant;
  size_t bytes = 0;                // reserved for the tenant: its versions, jobs and uploads
  std::list<CachedVersion*> idle;  // least recently used first
  size_t idle_bytes = 0;

  size_t cached_bytes = 0;  // part of `bytes` in attached versions; the rest is held by jobs
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
