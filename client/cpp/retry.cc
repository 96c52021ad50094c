// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/retry.h"

#include <algorithm>
#include <cmath>

#include "absl/random/random.h"
#include "absl/time/clock.h"
#include "client/cpp/replicas.h"
#include "crout/status.h"

namespace crout {
inline namespace api {
namespace internal {
namespace {

bool MayRetry(RetryClass retry_class, const absl::Status& status) {
  if (retry_class == RetryClass::kNever) return false;
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
      return RetryDelay(status).has_value();
    case absl::StatusCode::kUnavailable:
      return retry_class == RetryClass::kIdempotent || IsOtherReplica(status);
    default:
      return false;
  }
}

}  // namespace

std::optional<absl::Duration> DelayBeforeRetry(const RetryPolicy& policy, RetryClass retry_class,
                                               int attempts_made, const absl::Status& status,
                                               bool restarts) {
  if (!MayRetry(retry_class, status)) return std::nullopt;
  const bool unlimited = restarts && absl::IsUnavailable(status) && policy.max_attempts > 1;
  if (attempts_made >= policy.max_attempts && !unlimited) return std::nullopt;
  thread_local absl::BitGen random;
  if (const auto delay = RetryDelay(status); delay.has_value()) {
    // Limited, so that a server cannot make the caller sleep for arbitrarily long.
    return std::clamp(*delay, absl::ZeroDuration(), policy.max_server_delay) *
           absl::Uniform(random, 1.0, 1.2);
  }
  const double growth = std::pow(policy.multiplier, attempts_made - 1);
  return std::min(policy.max_backoff, policy.initial_backoff * growth) *
         absl::Uniform(random, 0.5, 1.0);
}

absl::Status RunWithRetries(const RetryPolicy& policy, RetryClass retry_class, absl::Time deadline,
                            const Cancellation* cancellation, std::atomic<bool>* reached,
                            absl::FunctionRef<absl::Status()> attempt) {
  absl::Time restarted_by = absl::InfiniteFuture();  // set by the first UNAVAILABLE
  bool redirected = false;
  for (int attempts = 1;; ++attempts) {
    // Without this check gRPC could complete a call after the deadline, if its timer is delayed.
    // The message is gRPC's.
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError("Deadline Exceeded");
    }
    const absl::Status status = attempt();
    // A status without a reason can be the client's: a deadline, an unreadable file.
    if (status.ok() || !Reason(status).empty()) *reached = true;
    if (absl::IsUnavailable(status) && restarted_by == absl::InfiniteFuture()) {
      restarted_by = absl::Now() + policy.restart;
    }
    if (!redirected && policy.max_attempts > 1 && MayRetry(retry_class, status) &&
        IsOtherReplica(status) && !RetryDelay(status)) {
      redirected = true;
      continue;
    }
    const bool restarts = *reached && absl::Now() < restarted_by;
    const auto delay = DelayBeforeRetry(policy, retry_class, attempts, status, restarts);
    if (!delay.has_value() || absl::Now() + *delay >= deadline) return status;
    if (cancellation == nullptr) {
      absl::SleepFor(*delay);
    } else if (cancellation->WaitFor(*delay)) {
      return absl::CancelledError("cancelled while waiting to try again");
    }
  }
}

}  // namespace internal
}  // namespace api
}  // namespace crout
