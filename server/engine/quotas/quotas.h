// SPDX-License-Identifier: Apache-2.0

// The limits of tenants in force, and the device seconds that tenants have used.
#ifndef CROUT_SERVER_ENGINE_QUOTAS_QUOTAS_H_
#define CROUT_SERVER_ENGINE_QUOTAS_QUOTAS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/util/mutex.h"
#include "server/engine/quotas/quota_table.h"

namespace crout {

// Returns RESOURCE_EXHAUSTED (reason QUOTA_EXCEEDED) with the quota for the client. The message is
// "tenant TENANT: PROBLEM; the quota QUOTA is LIMIT. ADVICE". `retry_seconds`: time after which a
// retry succeeds, or nothing if waiting does not help.
absl::Status QuotaExceeded(std::string_view tenant, absl::string_view quota,
                           absl::string_view problem, absl::string_view limit,
                           absl::string_view advice, std::optional<double> retry_seconds);

// Thread-safe. The time of devices is a token bucket of each tenant: it holds at most
// device_seconds_per_minute seconds, is refilled at this rate, and pays the measured seconds of
// jobs when they end. A tenant in debt starts no job.
class Quotas {
 public:
  // Without limits until Set() is called.
  Quotas() { Set({}); }
  Quotas(const Quotas&) = delete;  // Its mutex guards other objects.
  Quotas& operator=(const Quotas&) = delete;

  // Replaces all limits. The memory of the earlier table is not freed, because calls may use it.
  void Set(QuotaTable table) ABSL_LOCKS_EXCLUDED(mutex_);
  // The references are valid as long as this object.
  const QuotaTable& table() const { return *table_; }
  const QuotaLimits& Of(std::string_view tenant) const { return table().Of(tenant); }

  // Returns QUOTA_EXCEEDED if a matrix of order `n` exceeds max_n.
  absl::Status CheckOrder(std::string_view tenant, int64_t n) const;
  // Returns QUOTA_EXCEEDED, with a retry delay, if the tenant has used its device seconds.
  absl::Status CheckSeconds(std::string_view tenant) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Charges the measured seconds of a job. If the system is out of memory, the first charge of a
  // tenant may be lost.
  void Charge(std::string_view tenant, double seconds) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the device seconds that count in the quota now. 0 without a limit.
  double UsedSeconds(std::string_view tenant) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets tenants that have paid what they used. Call it now and then.
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Used {
    double seconds = 0;  // at the time `at`
    Time at;
  };
  using UsedByTenant = std::map<std::string, Used, std::less<>>;

  // Returns the used seconds at `now`.
  static double UsedAt(const Used& used, double limit, Time now);

  mutable Mutex mutex_;
  std::list<QuotaTable> tables_ ABSL_GUARDED_BY(mutex_);
  // The last of tables_. Each call reads limits several times, so readers take no lock.
  std::atomic<const QuotaTable*> table_;
  UsedByTenant used_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_QUOTAS_QUOTAS_H_
