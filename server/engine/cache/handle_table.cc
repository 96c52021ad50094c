// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/handle_table.h"

#include <algorithm>
#include <limits>

namespace crout {

HandleTable::Entry::Entry(const InsertOptions& options, TenantLoads::Account tenant_account,
                          absl::Time now, const Handle& new_handle)
    : handle(new_handle),
      tenant(options.tenant),
      name(options.name),
      request_id(options.request_id),
      listed(options.listed),
      create_time(now),
      life_end(now + options.life),
      lease(options.lease),
      lease_expire_time(std::min(now + options.lease, life_end)),
      account(std::move(tenant_account)) {}

absl::Time HandleTable::Entry::LeaseFrom(absl::Time now) const {
  // Use the later time: the wall clock can be set back.
  return std::min(std::max(now + lease, lease_expire_time), life_end);
}

HandleTable::Entry& HandleTable::Insert(std::unique_ptr<Entry> entry) {
  // Allocate the new elements of the indexes before any index changes.
  entry->sequence = ++last_sequence_;
  std::set<std::pair<absl::Time, Entry*>> by_end = {{entry->end(), entry.get()}};
  std::map<ListKey, Entry*> listed;
  if (entry->listed) {
    listed.emplace(ListKey(entry->tenant, "", entry->sequence), entry.get());
    listed.emplace(ListKey(entry->tenant, entry->name, entry->sequence), entry.get());
  }
  Entry& added = *entries_.emplace(entry->handle, std::move(entry)).first->second;
  // Nothing can fail from here on.
  listed_.merge(listed);
  by_end_.merge(by_end);
  if (added.listed) added.account.AddFactors(1);
  return added;
}

absl::StatusOr<HandleTable::Entry*> HandleTable::Find(std::string_view tenant, const Handle& handle,
                                                      absl::Time now, CacheMiss* miss) const {
  Entry* const entry = Find(handle);
  const Tombstones::Tombstone* const tombstone = tombstones_.Find(handle);
  if (entry == nullptr && tombstone == nullptr) {
    const bool own = handle.IsOfThisProcess();
    *miss = own ? CacheMiss::kUnknown : CacheMiss::kRestarted;
    return own ? UnknownHandleStatus() : OtherProcessStatus();
  }
  if ((entry != nullptr ? entry->tenant : tombstone->tenant) != tenant) {
    *miss = CacheMiss::kOtherTenant;
    return UnknownHandleStatus();
  }
  if (entry != nullptr && now < entry->end()) return entry;
  const Removal cause = entry != nullptr ? Removal::kExpired : tombstone->cause;
  *miss = MissOf(cause);
  return RemovedStatus(cause);
}

HandleTable::Entry* HandleTable::Find(const Handle& handle) const {
  const auto found = entries_.find(handle);
  return found == entries_.end() ? nullptr : found->second.get();
}

std::vector<HandleTable::Entry*> HandleTable::All() const {
  std::vector<Entry*> all;
  all.reserve(entries_.size());
  for (const auto& [handle, entry] : entries_) all.push_back(entry.get());
  return all;
}

std::vector<const HandleTable::Entry*> HandleTable::List(std::string_view tenant,
                                                         std::string_view name, int64_t before,
                                                         size_t limit, int64_t* next) const {
  const int64_t end = before > 0 ? before : std::numeric_limits<int64_t>::max();
  *next = 0;
  std::vector<const Entry*> entries;
  auto it = listed_.lower_bound(ListKey(tenant, name, end));
  while (it != listed_.begin()) {
    const auto& [key, entry] = *--it;
    if (std::get<0>(key) != tenant || std::get<1>(key) != name) break;
    if (entries.size() == limit) {
      if (limit > 0) *next = entries.back()->sequence;
      break;
    }
    entries.push_back(entry);
  }
  return entries;
}

HandleTable::Entry* HandleTable::FirstEnded(absl::Time now) const {
  return by_end_.empty() || by_end_.begin()->first > now ? nullptr : by_end_.begin()->second;
}

void HandleTable::Reschedule(Entry& entry, absl::FunctionRef<void()> change) noexcept {
  auto node = by_end_.extract({entry.end(), &entry});
  change();
  node.value().first = entry.end();
  by_end_.insert(std::move(node));
}

std::unique_ptr<HandleTable::Entry> HandleTable::Remove(const Handle& handle,
                                                        Removal cause) noexcept {
  auto node = entries_.extract(handle);
  std::unique_ptr<Entry> entry = std::move(node.mapped());
  tombstones_.Add(std::move(entry->tombstone), cause);
  by_end_.erase({entry->end(), entry.get()});
  listed_.erase(ListKey(entry->tenant, "", entry->sequence));
  listed_.erase(ListKey(entry->tenant, entry->name, entry->sequence));
  if (entry->listed) entry->account.AddFactors(-1);
  return entry;
}

}  // namespace crout
