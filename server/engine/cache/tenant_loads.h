// SPDX-License-Identifier: Apache-2.0

// The current load of each tenant, counted where it changes.
#ifndef CROUT_SERVER_ENGINE_CACHE_TENANT_LOADS_H_
#define CROUT_SERVER_ENGINE_CACHE_TENANT_LOADS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"
#include "server/engine/cache/cache_events.h"
#include "server/engine/cache/tenant_share.h"

namespace crout {

// A copy of a tenant's load. Each number is consistent in itself; they may be read at different
// moments.
struct TenantLoad {
  std::string tenant;
  int64_t factors = 0;  // cached factors that List() includes
  // Bytes of all cached factors, indexed by Tier. Those in host memory include analyses, counts of
  // iterations, and the entries of factors that have a file.
  std::array<int64_t, kTierCount> bytes{};
  std::array<int64_t, kTierCount> reserved{};  // `bytes`, and the bytes of jobs and uploads
  int64_t pinned_bytes = 0;                    // bytes of pinned factors
  int64_t calls = 0;                           // calls that have not ended

  // Bytes of jobs and uploads.
  int64_t bytes_in_flight() const;
  // Returns true if all numbers are 0. Pinned factors and bytes are numbers of factors too.
  bool empty() const { return factors == 0 && bytes == decltype(bytes){} && calls == 0; }
};

// Thread-safe. A tenant has a load as long as an account of it exists. A count costs an atomic
// addition; opening an account costs a look-up. No lock is held while more than a few tenants are
// visited.
class TenantLoads {
  struct Load {
    std::atomic<int64_t> factors = 0;
    std::array<std::atomic<int64_t>, kTierCount> bytes{};
    std::array<std::atomic<int64_t>, kTierCount> reserved{};
    std::atomic<int64_t> pinned_bytes = 0;
    std::atomic<int64_t> calls = 0;
    std::deque<TenantShare> shares;  // guarded by the mutex of TieredStore
    size_t accounts = 0;             // guarded by the mutex
  };
  using Loads = std::map<std::string, Load, std::less<>>;

 public:
  // Counts for one tenant. The owner must subtract what it has counted before it destroys the
  // account. Move-only. The TenantLoads outlives its accounts.
  class Account {
   public:
    Account() = default;  // no tenant: must not be used to count
    ~Account();
    Account(Account&& other) noexcept;
    Account& operator=(Account&& other) noexcept;

    void AddFactors(int64_t count) noexcept { load_->second.factors += count; }
    void AddBytes(Tier tier, int64_t bytes) noexcept {
      load_->second.bytes[static_cast<size_t>(tier)] += bytes;
    }
    void AddReserved(Tier tier, int64_t bytes) noexcept {
      load_->second.reserved[static_cast<size_t>(tier)] += bytes;
    }
    void AddPinnedBytes(int64_t bytes) noexcept { load_->second.pinned_bytes += bytes; }
    int64_t pinned_bytes() const noexcept { return load_->second.pinned_bytes; }
    int64_t factors() const noexcept { return load_->second.factors; }
    // Returns the reserved bytes that are not of cached factors.
    size_t bytes_in_flight() const noexcept;

    const std::string& tenant() const noexcept { return load_->first; }
    // Makes the tenant's shares of the `count` memories of a TieredStore, unless they exist. Throws
    // std::bad_alloc if the system is out of memory; it may be called again then. The caller holds
    // the mutex of the TieredStore.
    void MakeShares(size_t count);
    // Returns the tenant's share of the memory with this index; null for an account of no tenant.
    // Requires MakeShares(). Valid as long as an account of the tenant exists.
    TenantShare* share(size_t memory) const noexcept {
      return loads_ == nullptr ? nullptr : &load_->second.shares[memory];
    }

   private:
    friend class TenantLoads;
    Account(TenantLoads* loads, Loads::iterator load) : loads_(loads), load_(load) {}

    TenantLoads* loads_ = nullptr;
    Loads::iterator load_;
    bool is_call_ = false;
  };

  TenantLoads() = default;
  TenantLoads(const TenantLoads&) = delete;  // Accounts point to it.
  TenantLoads& operator=(const TenantLoads&) = delete;

  // Opens an account. Throws std::bad_alloc if the system is out of memory, and then changes
  // nothing.
  Account Open(std::string_view tenant);
  // Opens the account of a call, which counts as one call as long as the account lives. Throws like
  // Open().
  Account OpenCall(std::string_view tenant);

  // Returns the loads of the `count` tenants with the most bytes, largest first; ties are ordered
  // by name. Omits empty loads.
  std::vector<TenantLoad> Largest(size_t count) const;
  // Returns the load of a tenant. All numbers are 0 if no account of it exists.
  TenantLoad Of(std::string_view tenant) const;

 private:
  void Close(Loads::iterator load) noexcept;
  static TenantLoad Copy(const Loads::value_type& load);

  mutable Mutex mutex_;
  Loads loads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TENANT_LOADS_H_
