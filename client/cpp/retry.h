// Which refused calls are tried again, and when.
#ifndef CROUT_CLIENT_CPP_RETRY_H_
#define CROUT_CLIENT_CPP_RETRY_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "crout/options.h"

namespace crout::client {

enum class RetryClass : int {
  // What was sent cannot be sent again.
  kNever,
  // A second attempt could do the thing twice: only refusals before any effect, which are
  // RESOURCE_EXHAUSTED and ABORTED with the server's RetryInfo.
  kRefusedOnly,
  // Reads, and calls that a request_id makes idempotent: UNAVAILABLE as well.
  kIdempotent,
};

// How long to wait before attempt `attempts_made` + 1; nothing if the status is final. The
// server's RetryInfo, at most the policy's max_server_delay, is a lower bound, to which up to 20 %
// of jitter is added; without it the delay is uniform between half of the exponential backoff and
// all of it.
std::optional<absl::Duration> DelayBeforeRetry(const RetryPolicy& policy, RetryClass retry_class,
                                               int attempts_made, const absl::Status& status);

// Runs `attempt` until it succeeds, fails for good, the policy is exhausted, the wait would pass
// `deadline`, or `cancellation` (may be null) strikes. Returns the last attempt's status.
absl::Status RunWithRetries(const RetryPolicy& policy, RetryClass retry_class, absl::Time deadline,
                            const Cancellation* cancellation,
                            absl::FunctionRef<absl::Status()> attempt);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_RETRY_H_
