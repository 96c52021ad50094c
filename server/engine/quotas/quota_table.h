// SPDX-License-Identifier: Apache-2.0

// The limits of tenants, and the file that sets them.
#ifndef CROUT_SERVER_ENGINE_QUOTAS_QUOTA_TABLE_H_
#define CROUT_SERVER_ENGINE_QUOTAS_QUOTA_TABLE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace crout {

// The limits of one tenant. The defaults are no limits.
struct QuotaLimits {
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  int64_t device_bytes = kNoLimit;  // in the memory of each device: cached factors and jobs
  int64_t host_bytes = kNoLimit;    // the same in host memory
  int64_t store_bytes = kNoLimit;   // files in the store
  // device_bytes, host_bytes and store_bytes replace the tenant's equal shares, and may be exceeded
  // while no other tenant needs the space.
  bool soft = false;
  int64_t pinned_bytes = kNoLimit;
  int64_t factors = kNoLimit;          // cached factors that ListFactors returns
  int64_t bytes_in_flight = kNoLimit;  // memory of jobs and uploads, in all memories
  int64_t queued_jobs = kNoLimit;      // in the queue of each device
  int64_t running_jobs = kNoLimit;     // on each device
  int64_t max_n = kNoLimit;            // order of a matrix
  double device_seconds_per_minute = std::numeric_limits<double>::infinity();

  friend bool operator==(const QuotaLimits&, const QuotaLimits&) = default;
};

// The limits of all tenants.
struct QuotaTable {
  QuotaLimits defaults;  // limits of tenants that are not listed
  std::map<std::string, QuotaLimits, std::less<>> tenants;

  const QuotaLimits& Of(std::string_view tenant) const {
    const auto found = tenants.find(tenant);
    return found == tenants.end() ? defaults : found->second;
  }
};

// The file of --quotas, in TOML.
//
//   [default]                        # tenants that are not listed
//   max_n = 20000
//   device_bytes = "8GiB"
//
//   [tenant.alice]                   # keys that are absent here have the value of [default]
//   device_bytes = "40GiB"
//   soft = true
//   max_n = "none"
//
// The keys are the members of QuotaLimits. Parses the text of such a file. INVALID_ARGUMENT,
// "line N: ...", for malformed text, unknown or duplicate keys and sections, and values out of
// range.
absl::StatusOr<QuotaTable> ParseQuotas(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_QUOTAS_QUOTA_TABLE_H_
