// SPDX-License-Identifier: Apache-2.0

// Sums by tenant that never decrease, for metrics.
#ifndef CROUT_SERVER_ENGINE_QUOTAS_TENANT_TOTALS_H_
#define CROUT_SERVER_ENGINE_QUOTAS_TENANT_TOTALS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "kernels/util/allocation.h"

namespace crout {

// Not thread-safe. Clients may choose the names of tenants, so only the first kMostTenants have a
// sum; the amounts of all others count only in all().
class TenantTotals {
 public:
  static constexpr size_t kMostTenants = 1000;

  void Add(std::string_view tenant, double amount) noexcept {
    all_ += amount;
    AbandonOnBadAlloc([&] {
      auto found = totals_.find(tenant);
      if (found == totals_.end() && totals_.size() < kMostTenants) {
        found = totals_.try_emplace(std::string(tenant), 0).first;
      }
      if (found != totals_.end()) found->second += amount;
    });
  }
  double Of(std::string_view tenant) const {
    const auto found = totals_.find(tenant);
    return found == totals_.end() ? 0 : found->second;
  }
  double all() const { return all_; }

 private:
  std::map<std::string, double, std::less<>> totals_;
  double all_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_QUOTAS_TENANT_TOTALS_H_
