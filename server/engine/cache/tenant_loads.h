// SPDX-License-Identifier: Apache-2.0

// What each tenant holds and does at the moment, counted where it changes.
#ifndef CROUT_SERVER_ENGINE_CACHE_TENANT_LOADS_H_
#define CROUT_SERVER_ENGINE_CACHE_TENANT_LOADS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"
#include "server/engine/cache/tier.h"

namespace crout {

// A copy, as of one moment for each figure.
struct TenantLoad {
  std::string tenant;
  int64_t factors = 0;              // cached, that List() tells of
  std::array<int64_t, 2> bytes{0};  // of all that is cached, indexed by Tier
  int64_t calls = 0;                // that have not ended
};

// Thread-safe. A tenant is known as long as somebody has an account of it. A count costs an atomic
// addition, an account a look-up; no lock is held while more than a few tenants are visited.
class TenantLoads {
  struct Load {
    std::atomic<int64_t> factors = 0;
    std::array<std::atomic<int64_t>, 2> bytes = {0, 0};
    std::atomic<int64_t> calls = 0;
    size_t accounts = 0;  // under the mutex
  };
  using Loads = std::map<std::string, Load, std::less<>>;

 public:
  // Counts for one tenant. Whoever has it takes back what it has counted before it goes. Move-only;
  // its TenantLoads outlives it.
  class Account {
   public:
    Account() = default;  // of nobody: nothing may be counted
    ~Account();
    Account(Account&& other) noexcept;
    Account& operator=(Account&& other) noexcept;

    void AddFactors(int64_t count) noexcept { load_->second.factors += count; }
    void AddBytes(Tier tier, int64_t bytes) noexcept {
      load_->second.bytes[static_cast<size_t>(tier)] += bytes;
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

  // std::bad_alloc where memory lacks; nothing is changed then.
  Account Open(std::string_view tenant);
  // Likewise, of a call: it is counted as long as the account lives.
  Account OpenCall(std::string_view tenant);

  // At most `count`, those of most bytes first, among equals by their names.
  std::vector<TenantLoad> Largest(size_t count) const;
  // Of one that may be unknown: then all zero.
  TenantLoad Of(std::string_view tenant) const;

 private:
  void Close(Loads::iterator load) noexcept;
  static TenantLoad Copy(const Loads::value_type& load);

  mutable Mutex mutex_;
  Loads loads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_TENANT_LOADS_H_
