// SPDX-License-Identifier: Apache-2.0

// Rules of retries.
#ifndef CROUT_CLIENT_CPP_RETRY_H_
#define CROUT_CLIENT_CPP_RETRY_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "crout/options.h"

namespace crout::client {

enum class RetryClass : int {
  // The request cannot be sent again (it was read from a pipe).
  kNever,
  // A second attempt could repeat the effect. Retried only after a refusal before any effect:
  // RESOURCE_EXHAUSTED and ABORTED with the server's RetryInfo.
  kRefusedOnly,
  // Reads, and calls that a request_id makes idempotent. Retried also after UNAVAILABLE.
  kIdempotent,
};

// Delay before attempt `attempts_made` + 1; nullopt if the status is final. With the server's
// RetryInfo, at most the policy's max_server_delay: that delay plus up to 20 % of jitter. Without
// it: uniform between half of the exponential backoff and all of it.
std::optional<absl::Duration> DelayBeforeRetry(const RetryPolicy& policy, RetryClass retry_class,
                                               int attempts_made, const absl::Status& status);

// Runs `attempt` until it succeeds, fails permanently, the policy is exhausted, the delay would
// pass `deadline`, or `cancellation` (may be null) is cancelled. Returns the status of the last
// attempt; DEADLINE_EXCEEDED if `deadline` passed before the first.
absl::Status RunWithRetries(const RetryPolicy& policy, RetryClass retry_class, absl::Time deadline,
                            const Cancellation* cancellation,
                            absl::FunctionRef<absl::Status()> attempt);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_RETRY_H_
