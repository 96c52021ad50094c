// SPDX-License-Identifier: Apache-2.0

// A queue whose tenants take turns.
#ifndef CROUT_KERNELS_UTIL_TURN_QUEUE_H_
#define CROUT_KERNELS_UTIL_TURN_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace crout {

// Items of one tenant keep their order of arrival. A new tenant joins at the end of the turn order,
// and a tenant moves there when one of its items is dequeued. Not thread-safe.
template <class Item>
class TurnQueue {
  struct Tenant {
    std::string name;
    std::list<Item> items;
  };
  using Tenants = std::list<Tenant>;
  using Names = std::map<std::string_view, typename Tenants::iterator>;

 public:
  // Memory for one item of one tenant.
  class Node {
   public:
    // May throw std::bad_alloc.
    explicit Node(std::string_view tenant) : item_(1) {
      tenant_.push_back({std::string(tenant), {}});
      Names names;
      names.emplace(tenant_.front().name, tenant_.begin());
      name_ = names.extract(names.begin());
    }

   private:
    friend class TurnQueue;
    std::list<Item> item_;
    Tenants tenant_;
    typename Names::node_type name_;
  };

  // Position of an item, valid until the item is removed.
  struct Position {
    typename Tenants::iterator tenant;
    typename std::list<Item>::iterator item;
  };

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // Appends the item to those of its tenant. If it throws std::bad_alloc, the queue is unchanged.
  Position Add(std::string_view tenant, Item item) { return Add(Node(tenant), std::move(item)); }

  Position Add(Node node, Item item) noexcept {
    node.item_.front() = std::move(item);
    const auto added = by_name_.insert(std::move(node.name_));
    if (added.inserted) turns_.splice(turns_.end(), node.tenant_);
    const typename Tenants::iterator tenant = added.position->second;
    tenant->items.splice(tenant->items.end(), node.item_);
    ++size_;
    return {tenant, std::prev(tenant->items.end())};
  }

  // Removes and returns the item, and moves its tenant to the end of the turn order.
  Item Dequeue(Position position) noexcept {
    turns_.splice(turns_.end(), turns_, position.tenant);
    return Remove(position);
  }

  // Removes and returns the item. Its tenant keeps its place in the turn order.
  Item Remove(Position position) noexcept {
    Tenant& tenant = *position.tenant;
    Item item = std::move(*position.item);
    tenant.items.erase(position.item);
    --size_;
    if (tenant.items.empty()) {
      by_name_.erase(tenant.name);
      turns_.erase(position.tenant);
    }
    return item;
  }

  // Returns the first item, in turn order of the tenants, for which `matches(item)` is true.
  template <class Matches>
  std::optional<Position> Find(Matches matches) {
    for (auto tenant = turns_.begin(); tenant != turns_.end(); ++tenant) {
      const auto item = std::find_if(tenant->items.begin(), tenant->items.end(), matches);
      if (item != tenant->items.end()) return Position{tenant, item};
    }
    return std::nullopt;
  }

  template <class Visit>
  void ForEach(Visit visit) const {
    for (const Tenant& tenant : turns_) {
      for (const Item& item : tenant.items) visit(item);
    }
  }

  // Returns the number of items that will be dequeued before this one if no item is added.
  size_t Ahead(Position position) const {
    const auto place =
        static_cast<size_t>(std::distance(position.tenant->items.begin(), position.item));
    size_t ahead = place;
    bool before = true;
    for (auto tenant = turns_.begin(); tenant != turns_.end(); ++tenant) {
      if (&*tenant == &*position.tenant) {
        before = false;
      } else {
        ahead += std::min(tenant->items.size(), place + (before ? 1 : 0));
      }
    }
    return ahead;
  }

  // Returns the last item of the tenant with the most items, if it has at least two more than
  // `tenant`.
  std::optional<Position> Displaced(std::string_view tenant) {
    const auto found = by_name_.find(tenant);
    const size_t own = found == by_name_.end() ? 0 : found->second->items.size();
    const auto most = std::max_element(
        turns_.begin(), turns_.end(),
        [](const Tenant& a, const Tenant& b) { return a.items.size() < b.items.size(); });
    if (most == turns_.end() || most->items.size() < own + 2) return std::nullopt;
    return Position{most, std::prev(most->items.end())};
  }

 private:
  Tenants turns_;  // every tenant has at least one item
  Names by_name_;
  size_t size_ = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_TURN_QUEUE_H_
