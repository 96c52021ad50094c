// SPDX-License-Identifier: Apache-2.0

// The notation of durations in options and output: Go's, such as "90s" or "1h30m", with the unit d
// for 24 hours.
#ifndef CROUT_KERNELS_UTIL_DURATION_H_
#define CROUT_KERNELS_UTIL_DURATION_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace crout {

// Parses numbers with units (ns, us, ms, s, m, h, d) of at least zero in total: "7d", "1h30m",
// "1.5s", "0". "inf" is infinite. nullopt for other text.
std::optional<absl::Duration> DurationFrom(absl::string_view text);

// Formats a duration so that DurationFrom reads it: with three digits below a minute ("1.91ms",
// "12.5s"), otherwise rounded to seconds ("1m30s", "1d12h").
std::string DurationText(absl::Duration duration);

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_DURATION_H_
