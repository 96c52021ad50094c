// SPDX-License-Identifier: Apache-2.0

// Timeouts for events that a test waits for.
#ifndef CROUT_TESTS_SUPPORT_EVENTUALLY_H_
#define CROUT_TESTS_SUPPORT_EVENTUALLY_H_

#include <functional>

#include "absl/time/time.h"

namespace crout::testing {

// Far longer than any event takes, even on a busy machine. Only a failing test waits this long.
inline constexpr absl::Duration kTestTimeout = absl::Seconds(60);

// Polls `condition` until it holds. Returns false if it does not hold within kTestTimeout.
bool Eventually(const std::function<bool()>& condition);

// Observes a state that ends after `time` on the machine's clock. Repeats `attempt` until one
// succeeds. An unsuccessful attempt that took at least `time` is inconclusive, because the machine
// may have stalled, and is repeated. Returns false if an attempt fails in less than `time`, or if
// none succeeds within kTestTimeout.
bool SeenWithin(absl::Duration time, const std::function<bool()>& attempt);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_EVENTUALLY_H_
