// SPDX-License-Identifier: Apache-2.0

// Retries of failed calls.
#ifndef CROUT_CLIENT_CPP_RETRY_H_
#define CROUT_CLIENT_CPP_RETRY_H_

#include <atomic>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "crout/client_options.h"

namespace crout {
inline namespace api {
namespace internal {

enum class RetryClass : int {
  // The request is read from a pipe and cannot be sent again. Never retried.
  kNever,
  // A second attempt could repeat the effect. Retried only after a refusal before any effect:
  // RESOURCE_EXHAUSTED or ABORTED with the server's RetryInfo, or OTHER_REPLICA.
  kRefusedOnly,
  // A second attempt is safe: it only reads, or a request_id makes it idempotent. Also retried
  // after UNAVAILABLE.
  kIdempotent,
};

// Delay before attempt `attempts_made` + 1; nullopt if there must be no further attempt.
// `restarts`: whether the server may be restarting, so that max_attempts does not limit attempts
// after UNAVAILABLE. RetryPolicy defines the delay.
std::optional<absl::Duration> DelayBeforeRetry(const RetryPolicy& policy, RetryClass retry_class,
                                               int attempts_made, const absl::Status& status,
                                               bool restarts = false);

// Runs `attempt` until it succeeds or must not be retried. The first retry after OTHER_REPLICA has
// no delay, unless the server sent one. Also ends if the next delay would reach `deadline`.
// `*reached`: whether a server has answered this client; set if one answers. Returns the status of
// the last attempt; DEADLINE_EXCEEDED if `deadline` passed before an attempt; CANCELLED if
// `cancellation` (may be null) was cancelled during a delay.
absl::Status RunWithRetries(const RetryPolicy& policy, RetryClass retry_class, absl::Time deadline,
                            const Cancellation* cancellation, std::atomic<bool>* reached,
                            absl::FunctionRef<absl::Status()> attempt);

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_RETRY_H_
