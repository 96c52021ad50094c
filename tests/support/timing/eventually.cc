// SPDX-License-Identifier: Apache-2.0

#include "tests/support/timing/eventually.h"

#include "absl/time/clock.h"

namespace crout::testing {

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + kTestTimeout;
  while (!condition()) {
    if (absl::Now() >= end) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

bool SeenWithin(absl::Duration time, const std::function<bool()>& attempt) {
  bool seen = false;
  const bool conclusive = Eventually([&] {
    const absl::Time begin = absl::Now();
    seen = attempt();
    return seen || absl::Now() - begin < time;
  });
  return conclusive && seen;
}

}  // namespace crout::testing
