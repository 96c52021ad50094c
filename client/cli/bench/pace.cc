// SPDX-License-Identifier: Apache-2.0

#include "client/cli/bench/pace.h"

#include "absl/time/clock.h"

namespace crout::cli {

Pace::Pace(const PaceOptions& options, absl::Time begin)
    : options_(options),
      begin_(begin),
      measured_from_(begin + options.warm_up),
      end_(options.requests > 0 ? absl::InfiniteFuture() : measured_from_ + options.duration) {}

std::optional<absl::Time> Pace::Next() {
  absl::Time time = absl::Now();
  if (options_.rate > 0) {
    time = begin_ + absl::Seconds(static_cast<double>(scheduled_++) / options_.rate);
  }
  if (time >= end_) return std::nullopt;
  if (options_.requests > 0 && Counts(time) && counted_++ >= options_.requests) return std::nullopt;
  const absl::Duration early = time - absl::Now();
  if (early > absl::ZeroDuration()) absl::SleepFor(early);
  return time;
}

}  // namespace crout::cli
