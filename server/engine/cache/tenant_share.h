// SPDX-License-Identifier: Apache-2.0

// The cached factors of one tenant in one memory, and an order of tenants by their bytes.
#ifndef CROUT_SERVER_ENGINE_CACHE_TENANT_SHARE_H_
#define CROUT_SERVER_ENGINE_CACHE_TENANT_SHARE_H_

#include <cstddef>
#include <list>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"

namespace crout {

struct CachedVersion;

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
  size_t bytes = 0;                // size of the attached versions, idle or not
  std::list<CachedVersion*> idle;  // least recently used first
  size_t idle_bytes = 0;

 private:
  Order::node_type node;  // empty while an order contains the share
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TENANT_SHARE_H_
