// SPDX-License-Identifier: Apache-2.0

// The rules by which tenants share one memory (decisions 0065, 0068 and 0069).
//
// The bytes of a tenant are all bytes that are reserved for it: versions in the cache, jobs and
// uploads. A tenant is active while it has bytes, and for kKeptFor after its last reservation. The
// share of a tenant is its soft quota. Active tenants without a soft quota have equal shares of the
// rest of the memory, without bytes that belong to no tenant.
//
// A share is a soft limit: a tenant may exceed it while no other tenant needs the memory. Two rules
// protect a tenant within its share. First, it loses no version for a request of another tenant,
// nor for its own request. Second, requests that take a tenant above its share leave other tenants
// the bytes that their jobs had or requested in the last kKeptFor, up to their shares. Jobs cannot
// be evicted, so a tenant within its share waits at most until the jobs that run have ended.
//
// A quota that is not soft is a hard limit: a request evicts versions of the same tenant until it
// is within the quota, and is refused if that does not suffice.
#ifndef CROUT_SERVER_ENGINE_CACHE_MEMORY_SHARES_H_
#define CROUT_SERVER_ENGINE_CACHE_MEMORY_SHARES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/util/mutex.h"
#include "server/engine/admission/memory_budget.h"
#include "server/engine/cache/tenant_loads.h"
#include "server/engine/cache/tenant_share.h"
#include "server/engine/cache/tier_memory.h"
#include "server/engine/quotas/quota_table.h"

namespace crout {

// Time for which memory is kept for the jobs of a tenant.
inline constexpr std::chrono::seconds kKeptFor{10};

// Purpose of the bytes that a ShareOwner counts.
enum class ShareUse : uint8_t {
  kJob,   // a job or an upload, or a version that the job makes
  kCopy,  // a version that becomes idle at once, so that it can be evicted for other tenants
  kCache  // a cached object that is not a version, such as an analysis; counts as cached
};

// Counts the reservations of one tenant in one memory, and keeps the tenant's share alive. The
// TieredStore outlives it.
class ShareOwner final : public ReservationOwner, public std::enable_shared_from_this<ShareOwner> {
 public:
  // The TieredStore owns `mutex`. `account` has shares.
  ShareOwner(Mutex& mutex, TierMemory& memory, TenantLoads::Account account,
             const QuotaLimits& limits, ShareUse use)
      : mutex_(mutex), memory_(memory), account_(std::move(account)), limits_(limits), use_(use) {}

  const TenantLoads::Account& account() const { return account_; }
  TenantShare& share() const { return *account_.share(memory_.index); }
  const QuotaLimits& limits() const { return limits_; }
  // Returns the name and the value of the quota of the bytes in the memory.
  std::pair<const char*, int64_t> memory_quota() const;
  Tier tier() const { return memory_.tier; }
  ShareUse use() const { return use_; }

  // ReservationOwner. TryAdd() returns false if the bytes are not Allowed() now.
  bool TryAdd(size_t bytes) noexcept override ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(size_t bytes) noexcept override ABSL_LOCKS_EXCLUDED(mutex_);
  void Subtract(size_t bytes) noexcept override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Adds `more` bytes and subtracts `fewer`.
  void Change(size_t more, size_t fewer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex& mutex_;
  TierMemory& memory_;
  TenantLoads::Account account_;
  const QuotaLimits limits_;
  const ShareUse use_;
};

// Needs of one reservation.
struct ShareRequest {
  size_t bytes = 0;
  ShareOwner* owner = nullptr;  // null: of no tenant; may evict all idle versions
};

// The caller of the following functions holds the mutex of the TieredStore. Only CheckQuotas()
// allocates.

// Runs `change`, which may change the share and its idle versions.
void UpdateShare(TierMemory& memory, TenantShare& share, absl::FunctionRef<void()> change) noexcept;

// Bytes that a request may take.
struct ShareRoom {
  size_t free = 0;       // bytes of the budget that are not reserved
  size_t evictable = 0;  // bytes of idle versions to evict; exact only if the request does not fit
  size_t kept = 0;       // part of both that is kept for other tenants
  std::chrono::duration<double> kept_for{0};  // the longest time for which they are kept

  // Returns true if there is room for the request, after evictions if `free` is too small.
  bool Fits(size_t bytes) const {
    return bytes <= free + evictable && kept <= free + evictable - bytes;
  }
};
ShareRoom RoomFor(TierMemory& memory, const ShareRequest& request);
// Returns the share from which the request evicts next; null if it may evict nothing.
const TenantShare* NextVictim(TierMemory& memory, const ShareRequest& request);
// Returns QUOTA_EXCEEDED if the request exceeds a quota of its tenant even after its idle versions
// were evicted. `retry_seconds` is the retry delay if jobs of the tenant hold the bytes.
absl::Status CheckQuotas(const TierMemory& memory, const ShareRequest& request,
                         double retry_seconds);
// Keeps memory for a request that was refused, until kKeptFor after `retry_after`.
void KeepFor(TierMemory& memory, const ShareRequest& request,
             std::chrono::duration<double> retry_after) noexcept;
// Ends the keeping of memory for one tenant, whose time has passed or, if `all` is set, any.
// Returns an object to be destroyed without the mutex; null if there is no such tenant.
std::shared_ptr<ReservationOwner> EndKeptMemory(TierMemory& memory, bool all) noexcept;

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_MEMORY_SHARES_H_
