// SPDX-License-Identifier: Apache-2.0

#include "tests/support/patience.h"

#include "absl/time/clock.h"

namespace crout::testing {

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + kPatience;
  while (!condition()) {
    if (absl::Now() >= end) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

bool SeenWithin(absl::Duration time, const std::function<bool()>& attempt) {
  bool seen = false;
  const bool told = Eventually([&] {
    const absl::Time begin = absl::Now();
    seen = attempt();
    return seen || absl::Now() - begin < time;
  });
  return told && seen;
}

}  // namespace crout::testing
