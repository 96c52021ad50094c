// SPDX-License-Identifier: Apache-2.0

#include "server/engine/quotas/quotas.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"

namespace crout {
namespace {

constexpr double kMinute = 60;
// Added to retry delays, so that rounding does not refuse the retry.
constexpr double kSlackSeconds = 0.01;

}  // namespace

absl::Status QuotaExceeded(std::string_view tenant, absl::string_view quota,
                           absl::string_view problem, absl::string_view limit,
                           absl::string_view advice, std::optional<double> retry_seconds) {
  const std::string what = absl::StrCat(problem, "; the quota ", quota, " is ", limit);
  absl::Status status = WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                       "tenant ", ToAbsl(tenant), ": ", what, ". ", advice)),
                                   kReasonQuotaExceeded);
  status = WithQuota(std::move(status), {absl::StrCat("tenant:", ToAbsl(tenant)), what});
  return retry_seconds ? WithRetryAfter(std::move(status), *retry_seconds) : status;
}

void Quotas::Set(QuotaTable table) {
  MutexLock lock(&mutex_);
  tables_.push_back(std::move(table));
  table_ = &tables_.back();
}

absl::Status Quotas::CheckOrder(std::string_view tenant, int64_t n) const {
  const int64_t limit = Of(tenant).max_n;
  if (n <= limit) return absl::OkStatus();
  return QuotaExceeded(tenant, "max_n", absl::StrCat("the matrix has order ", n),
                       absl::StrCat(limit),
                       "Send a smaller matrix, or ask the operator to raise the quota",
                       /*retry_seconds=*/std::nullopt);
}

double Quotas::UsedAt(const Used& used, double limit, Time now) {
  const double minutes = std::chrono::duration<double>(now - used.at).count() / kMinute;
  return std::max(0.0, used.seconds - limit * minutes);
}

absl::Status Quotas::CheckSeconds(std::string_view tenant) const {
  const double limit = Of(tenant).device_seconds_per_minute;
  const double used = UsedSeconds(tenant);
  if (used <= limit) return absl::OkStatus();
  return QuotaExceeded(tenant, "device_seconds_per_minute",
                       absl::StrCat("its jobs have used ", used, " s"), absl::StrCat(limit),
                       "Try again later", (used - limit) / limit * kMinute + kSlackSeconds);
}

void Quotas::Charge(std::string_view tenant, double seconds) noexcept {
  const double limit = Of(tenant).device_seconds_per_minute;
  if (!std::isfinite(limit)) return;
  MutexLock lock(&mutex_);
  AbandonOnBadAlloc([&] {
    mutex_.AssertHeld();
    auto used = used_.find(tenant);
    const Time now = SteadyNow();
    if (used == used_.end()) used = used_.try_emplace(std::string(tenant), Used{0, now}).first;
    used->second = {UsedAt(used->second, limit, now) + std::max(0.0, seconds), now};
  });
}

double Quotas::UsedSeconds(std::string_view tenant) const {
  const double limit = Of(tenant).device_seconds_per_minute;
  if (!std::isfinite(limit)) return 0;
  MutexLock lock(&mutex_);
  const auto used = used_.find(tenant);
  if (used == used_.end()) return 0;
  return UsedAt(used->second, limit, SteadyNow());
}

void Quotas::Sweep() {
  const Time now = SteadyNow();
  MutexLock lock(&mutex_);
  std::erase_if(used_, [&](const auto& used) {
    mutex_.AssertHeld();
    const double limit = Of(used.first).device_seconds_per_minute;
    return !std::isfinite(limit) || UsedAt(used.second, limit, now) == 0;
  });
}

}  // namespace crout
