// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/memory_shares.h"

#include <algorithm>
#include <utility>

#include "kernels/util/clock.h"

namespace crout {
namespace {

using Time = std::chrono::steady_clock::time_point;

// Longest retry delay for which memory is kept.
constexpr std::chrono::minutes kLongestRetry{10};

bool IsActive(const TenantShare& share) { return share.bytes > 0 || share.recent.linked(); }

size_t Above(size_t a, size_t b) { return a > b ? a - b : 0; }

// Returns the bytes of a tenant's share of the memory.
size_t ShareBytes(const TierMemory& memory, const TenantShare& own) {
  const size_t limit = memory.budget->limit();
  const size_t unowned = Above(memory.budget->reserved(), memory.owned_bytes);
  return Above(limit, unowned) / (memory.tenants + (IsActive(own) ? 0 : 1));
}

// Returns the bytes that the jobs and uploads of the tenant hold.
size_t UncachedBytes(const TenantShare& share) { return Above(share.bytes, share.cached_bytes); }

// Runs `change`, which may change the activity of the tenant.
template <class Change>
void CountActive(TierMemory& memory, TenantShare& share, Change change) {
  const bool was_active = IsActive(share);
  change();
  if (IsActive(share) != was_active) memory.tenants += was_active ? -1 : 1;
}

// Keeps `bytes` for the jobs of the owner's tenant until `until`, unless more is kept for them.
void Keep(TierMemory& memory, ShareOwner& owner, size_t bytes, Time until) {
  TenantShare& share = owner.share();
  if (bytes < share.kept_bytes && SteadyNow() < share.kept_until) return;
  share.kept_bytes = bytes;
  share.kept_until = until;
  if (share.recent.linked()) return;
  CountActive(memory, share, [&] { share.recent.Link(memory.recent); });
  share.keeper = owner.shared_from_this();
}

}  // namespace

bool ShareOwner::TryAdd(size_t bytes) noexcept {
  MutexLock lock(&mutex_);
  if (!RoomFor(memory_, {.bytes = bytes, .owner = this}).Fits(bytes)) return false;
  Change(bytes, 0);
  if (!for_copy_) Keep(memory_, *this, UncachedBytes(share()), SteadyNow() + kKeptFor);
  return true;
}

void ShareOwner::Add(size_t bytes) noexcept {
  MutexLock lock(&mutex_);
  Change(bytes, 0);
}

void ShareOwner::Subtract(size_t bytes) noexcept {
  MutexLock lock(&mutex_);
  Change(0, bytes);
}

void ShareOwner::Change(size_t more, size_t fewer) {
  TenantShare& share = this->share();
  account_.AddReserved(memory_.tier, static_cast<int64_t>(more) - static_cast<int64_t>(fewer));
  memory_.owned_bytes += more - fewer;
  CountActive(memory_, share,
              [&] { share.Reorder(memory_.evictable, [&] { share.bytes += more - fewer; }); });
}

ShareRoom RoomFor(const TierMemory& memory, const ShareRequest& request) {
  const size_t reserved = memory.budget->reserved();
  ShareRoom room;
  room.free = Above(memory.budget->limit(), std::max(reserved, memory.owned_bytes));
  if (request.owner == nullptr) {
    room.evictable = memory.idle_bytes;
    return room;
  }
  const TenantShare& own = request.owner->share();
  const size_t share = ShareBytes(memory, own);
  const size_t above = Above(own.bytes, share) + Above(request.bytes, Above(share, own.bytes));
  if (above > 0 && !request.owner->for_copy()) {
    const Time now = SteadyNow();
    for (const TenantShare* other : memory.recent) {
      const size_t kept =
          std::min(Above(share, other->bytes), Above(other->kept_bytes, UncachedBytes(*other)));
      if (other == &own || kept == 0 || now >= other->kept_until) continue;
      room.kept += kept;
      room.kept_for =
          std::max<std::chrono::duration<double>>(room.kept_for, other->kept_until - now);
    }
  }
  room.evictable = std::min(own.idle_bytes, above);
  for (auto next = memory.evictable.rbegin(); next != memory.evictable.rend(); ++next) {
    const TenantShare& other = **next;
    if (other.bytes <= share || room.Fits(request.bytes)) break;
    if (&other != &own) room.evictable += std::min(other.idle_bytes, other.bytes - share);
  }
  return room;
}

const TenantShare* NextVictim(const TierMemory& memory, const ShareRequest& request) {
  const TenantShare* own = request.owner == nullptr ? nullptr : &request.owner->share();
  auto next = memory.evictable.rbegin();
  if (next != memory.evictable.rend() && *next == own) ++next;
  const TenantShare* other = next == memory.evictable.rend() ? nullptr : *next;
  if (own == nullptr) return other;
  const size_t share = ShareBytes(memory, *own);
  const size_t sum = own->bytes + request.bytes;
  if (other != nullptr && other->bytes <= share) other = nullptr;
  if (own->idle.empty() || sum <= share) return other;
  return other == nullptr || sum >= other->bytes ? own : other;
}

void KeepFor(TierMemory& memory, const ShareRequest& request,
             std::chrono::duration<double> retry_after) noexcept {
  if (request.owner == nullptr || request.bytes > memory.budget->limit()) return;
  const auto kept_for =
      kKeptFor + std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::min<std::chrono::duration<double>>(retry_after, kLongestRetry));
  Keep(memory, *request.owner, UncachedBytes(request.owner->share()) + request.bytes,
       SteadyNow() + kept_for);
}

std::shared_ptr<ReservationOwner> EndKeptMemory(TierMemory& memory, bool all) noexcept {
  const Time now = SteadyNow();
  for (TenantShare* const share : memory.recent) {
    if (!all && now < share->kept_until) continue;
    CountActive(memory, *share, [&] { share->recent.Unlink(memory.recent); });
    share->kept_bytes = 0;
    return std::move(share->keeper);
  }
  return nullptr;
}

}  // namespace crout
