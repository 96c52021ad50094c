// SPDX-License-Identifier: Apache-2.0

// Timeouts for events that a test waits for.
#ifndef CROUT_TESTS_SUPPORT_TIMING_EVENTUALLY_H_
#define CROUT_TESTS_SUPPORT_TIMING_EVENTUALLY_H_

#include <functional>

#include "absl/time/time.h"

namespace crout::testing {

// Much longer than any event takes, even on a busy machine. Only a failing test waits this long.
inline constexpr absl::Duration kTestTimeout = absl::Seconds(60);

// Polls `condition` every 2 ms until it is true. Returns false if it is still false after
// kTestTimeout.
bool Eventually(const std::function<bool()>& condition);

// Checks a state that lasts only for `time`. Calls `attempt`, which creates the state and returns
// whether it observed it. A failed attempt that took at least `time` is repeated, because a stalled
// machine may have missed the state. Returns true after the first success. Returns false if an
// attempt fails in less than `time`, or if none succeeds within kTestTimeout.
bool SeenWithin(absl::Duration time, const std::function<bool()>& attempt);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_TIMING_EVENTUALLY_H_
