// SPDX-License-Identifier: Apache-2.0

// A queue that serves its tenants in equal parts of the cost of their items, and the items of a
// tenant by priority.
#ifndef CROUT_KERNELS_UTIL_FAIR_QUEUE_H_
#define CROUT_KERNELS_UTIL_FAIR_QUEUE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace crout {

// Priority of an item among the items of its tenant.
enum class QueuePriority : uint8_t { kInteractive, kNormal, kBatch };
inline constexpr std::array<std::string_view, 3> kQueuePriorityNames = {"interactive", "normal",
                                                                        "batch"};

// Start-time fair queueing with equal weights (P. Goyal, H. M. Vin and H. Cheng, "Start-time fair
// queueing: a scheduling algorithm for integrated services packet switching networks", SIGCOMM
// 1996). The first item of each tenant has a start time: the costs that its tenant has been
// charged. The queue serves the earliest start first; of equal ones, the tenant that was served or
// joined longest ago. A tenant that joins starts at the time of the item served last, or later if
// its own last item has not been paid off by then. With equal costs, tenants take turns.
//
// The items of one tenant and priority keep their order of arrival. The priorities of a tenant
// share its part by weighted fair queueing (A. Demers, S. Keshav and S. Shenker, "Analysis and
// simulation of a fair queueing algorithm", SIGCOMM 1989) with the weights kWeights: the earliest
// finish time is served first, which is the start time plus the cost over the weight. Of equal
// ones, the higher priority is served first. Start times begin and advance as those of tenants do.
//
// Costs are positive and finite. Not thread-safe.
template <class Item>
class FairQueue {
  struct Entry {
    Item item;
    double cost = 1;
    QueuePriority priority = QueuePriority::kNormal;
  };
  struct Tenant;
  struct ByStart {
    bool operator()(const Tenant* a, const Tenant* b) const {
      return std::tie(a->start, a->turn) < std::tie(b->start, b->turn);
    }
  };
  using Order = std::set<Tenant*, ByStart>;
  static constexpr std::array<double, kQueuePriorityNames.size()> kWeights = {16, 4, 1};
  // The items of one tenant and priority.
  struct Level {
    std::list<Entry> items;
    double start = 0;  // start of the first item, or of the next one to arrive: costs over kWeights
  };
  struct Tenant {
    const std::string* name = nullptr;
    std::array<Level, kWeights.size()> levels;
    double now = 0;         // latest start of a served item in its level
    double start = 0;       // start of the first item, or of the next one to arrive
    uint64_t turn = 0;      // order of the last service or arrival
    size_t size = 0;        // queued items
    size_t in_service = 0;  // items from Begin() to End()
    size_t max_in_service = std::numeric_limits<size_t>::max();
    typename Order::node_type place;  // empty while an order contains the tenant
  };
  using Tenants = std::map<std::string, Tenant, std::less<>>;

 public:
  // A tenant, valid while it has queued items or items in service.
  using TenantRef = Tenant*;

  // Memory for one item of one tenant.
  class Node {
   public:
    // May throw std::bad_alloc.
    explicit Node(std::string_view tenant) : entry_(1) {
      Tenants tenants;
      const auto added = tenants.try_emplace(std::string(tenant)).first;
      added->second.name = &added->first;
      Order order;
      added->second.place = order.extract(order.insert(&added->second).first);
      tenant_ = tenants.extract(added);
    }

   private:
    friend class FairQueue;
    std::list<Entry> entry_;
    typename Tenants::node_type tenant_;
  };

  // Position of an item, valid until the item is removed. `entry->item` is the item.
  struct Position {
    TenantRef tenant;
    typename std::list<Entry>::iterator entry;
  };

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // Appends the item to those of its tenant and priority. If it throws std::bad_alloc, the queue is
  // unchanged.
  Position Add(std::string_view tenant, Item item, double cost = 1,
               QueuePriority priority = QueuePriority::kNormal) {
    return Add(Node(tenant), std::move(item), cost, priority);
  }

  Position Add(Node node, Item item, double cost = 1,
               QueuePriority priority = QueuePriority::kNormal) noexcept {
    node.entry_.front() = {std::move(item), cost, priority};
    Tenant& tenant = tenants_.insert(std::move(node.tenant_)).position->second;
    Level& level = LevelOf(tenant, priority);
    Update(tenant, [&] {
      if (tenant.size == 0) {
        tenant.start = std::max(tenant.start, now_);
        tenant.turn = ++last_turn_;
      }
      if (level.items.empty()) level.start = std::max(level.start, tenant.now);
      level.items.splice(level.items.end(), node.entry_);
      ++tenant.size;
    });
    ++size_;
    return {&tenant, std::prev(level.items.end())};
  }

  // Removes and returns the item, and charges its cost to its tenant.
  Item Dequeue(Position position) noexcept { return Serve(position, /*in_service=*/0); }

  // The same for an item whose service has a duration. The caller ends it by End().
  Item Begin(Position position) noexcept { return Serve(position, /*in_service=*/1); }
  // Ends the service of an item. `correction` is its measured cost minus the cost charged so far.
  void End(TenantRef tenant, QueuePriority priority, double correction) noexcept {
    --in_service_;
    Update(*tenant, [&] {
      --tenant->in_service;
      Charge(*tenant, priority, correction);
    });
    Forget();
  }

  // Removes and returns the item, and charges nothing.
  Item Remove(Position position) noexcept {
    Item item = std::move(position.entry->item);
    Update(*position.tenant, [&] { Erase(position); });
    Forget();
    return item;
  }

  // Limits the number of items of the tenant that are in service at a time, while it has items.
  void LimitService(TenantRef tenant, size_t max_in_service) noexcept {
    tenant->max_in_service = max_in_service;
  }
  static const std::string& NameOf(TenantRef tenant) { return *tenant->name; }
  // Return the numbers of items of the tenant that are queued, and that are in service.
  size_t Queued(std::string_view tenant) const {
    const auto found = tenants_.find(tenant);
    return found == tenants_.end() ? 0 : found->second.size;
  }
  size_t InService(std::string_view tenant) const {
    const auto found = tenants_.find(tenant);
    return found == tenants_.end() ? 0 : found->second.in_service;
  }
  // Returns the number of queued items of the tenant with this priority.
  size_t Queued(std::string_view tenant, QueuePriority priority) const {
    const auto found = tenants_.find(tenant);
    if (found == tenants_.end()) return 0;
    return found->second.levels[static_cast<size_t>(priority)].items.size();
  }

  // Returns the position of any queued item.
  std::optional<Position> First() {
    if (order_.empty()) return std::nullopt;
    return Last(**order_.begin());
  }

  // Returns the first item, in the order of the tenants, for which `matches(item)` is true: of each
  // priority the first such item, and of these the one with the earliest finish. Skips tenants that
  // have reached their limit of items in service.
  template <class Matches>
  std::optional<Position> Find(Matches matches) {
    for (Tenant* tenant : order_) {
      if (!MayServe(*tenant)) continue;
      std::optional<Position> first;
      double earliest = 0;
      for (Level& level : tenant->levels) {
        const auto entry = std::find_if(level.items.begin(), level.items.end(),
                                        [&](const Entry& e) { return matches(e.item); });
        if (entry == level.items.end()) continue;
        const double finish = level.start + WeightedCost(*entry);
        if (first && finish >= earliest) continue;
        first = Position{tenant, entry};
        earliest = finish;
      }
      if (first) return first;
    }
    return std::nullopt;
  }

  // Visits the queued items of tenants that have not reached their limit of items in service.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (const Tenant* tenant : order_) {
      if (!MayServe(*tenant)) continue;
      for (const Level& level : tenant->levels) {
        for (const Entry& entry : level.items) visit(entry.item);
      }
    }
  }

  // Returns the number of items that will be dequeued before this one if no item is added and no
  // cost is corrected.
  size_t Ahead(Position position) const {
    const Tenant& own = *position.tenant;
    double start = own.start;
    size_t ahead = 0;
    VisitInOrder(own, [&](const Entry& entry) {
      if (&entry == &*position.entry) return false;
      ++ahead;
      start += entry.cost;
      return true;
    });
    for (const Tenant* tenant : order_) {
      if (tenant == &own) continue;
      double other = tenant->start;
      VisitInOrder(*tenant, [&](const Entry& entry) {
        if (std::tie(other, tenant->turn) > std::tie(start, own.turn)) return false;
        ++ahead;
        other += entry.cost;
        return true;
      });
    }
    return ahead;
  }

  // Returns the last item, of the lowest priority, of the tenant with the most items, if it has at
  // least two more than `tenant`.
  std::optional<Position> Displaced(std::string_view tenant) const {
    const auto most =
        std::max_element(order_.begin(), order_.end(),
                         [](const Tenant* a, const Tenant* b) { return a->size < b->size; });
    if (most == order_.end() || (*most)->size < Queued(tenant) + 2) return std::nullopt;
    return Last(**most);
  }

 private:
  static bool MayServe(const Tenant& tenant) { return tenant.in_service < tenant.max_in_service; }
  static Level& LevelOf(Tenant& tenant, QueuePriority priority) {
    return tenant.levels[static_cast<size_t>(priority)];
  }
  static double WeightedCost(const Entry& entry) {
    return entry.cost / kWeights[static_cast<size_t>(entry.priority)];
  }
  // Returns the last item of the lowest priority. The tenant has items.
  static Position Last(Tenant& tenant) {
    const auto level = std::find_if(tenant.levels.rbegin(), tenant.levels.rend(),
                                    [](const Level& l) { return !l.items.empty(); });
    return {&tenant, std::prev(level->items.end())};
  }

  // Visits the items of the tenant in the order of their service, until `visit` returns false.
  template <class Visit>
  static void VisitInOrder(const Tenant& tenant, Visit visit) {
    struct Rest {
      typename std::list<Entry>::const_iterator next, end;
      double start;
    };
    std::array<Rest, kWeights.size()> rests;
    std::transform(tenant.levels.begin(), tenant.levels.end(), rests.begin(), [](const Level& l) {
      return Rest{l.items.begin(), l.items.end(), l.start};
    });
    const auto finish = [](const Rest& rest) {
      return rest.next == rest.end ? std::numeric_limits<double>::infinity()
                                   : rest.start + WeightedCost(*rest.next);
    };
    for (size_t i = 0; i < tenant.size; ++i) {
      Rest& first =
          *std::min_element(rests.begin(), rests.end(),
                            [&](const Rest& a, const Rest& b) { return finish(a) < finish(b); });
      const Entry& entry = *first.next++;
      if (!visit(entry)) return;
      first.start += WeightedCost(entry);
    }
  }

  static void Charge(Tenant& tenant, QueuePriority priority, double cost) noexcept {
    tenant.start += cost;
    LevelOf(tenant, priority).start += cost / kWeights[static_cast<size_t>(priority)];
  }
  void Erase(Position position) noexcept {
    LevelOf(*position.tenant, position.entry->priority).items.erase(position.entry);
    --position.tenant->size;
    --size_;
  }

  Item Serve(Position position, size_t in_service) noexcept {
    Tenant& tenant = *position.tenant;
    const QueuePriority priority = position.entry->priority;
    Item item = std::move(position.entry->item);
    now_ = std::max(now_, tenant.start);
    tenant.now = std::max(tenant.now, LevelOf(tenant, priority).start);
    Update(tenant, [&] {
      Charge(tenant, priority, position.entry->cost);
      tenant.turn = ++last_turn_;
      tenant.in_service += in_service;
      Erase(position);
    });
    in_service_ += in_service;
    Forget();
    return item;
  }

  // Runs `change` on the tenant and moves it to its place in the orders.
  template <class Change>
  void Update(Tenant& tenant, Change change) noexcept {
    if (tenant.place.empty()) {
      tenant.place = (tenant.size == 0 ? paying_ : order_).extract(&tenant);
    }
    change();
    if (tenant.size > 0) {
      order_.insert(std::move(tenant.place));
    } else if (tenant.in_service == 0) {
      paying_.insert(std::move(tenant.place));
    }
  }

  // Forgets the tenants that have no items and owe nothing: their next items start at now_.
  void Forget() noexcept {
    const bool idle = size_ == 0 && in_service_ == 0;
    if (idle) now_ = 0;
    while (!paying_.empty() && (idle || (*paying_.begin())->start <= now_)) {
      const std::string& name = *(*paying_.begin())->name;
      paying_.erase(paying_.begin());
      tenants_.erase(tenants_.find(name));
    }
  }

  Tenants tenants_;
  Order order_;     // the tenants with items
  Order paying_;    // the tenants without items, queued or in service
  double now_ = 0;  // latest start of a served item
  uint64_t last_turn_ = 0;
  size_t size_ = 0;
  size_t in_service_ = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_FAIR_QUEUE_H_
