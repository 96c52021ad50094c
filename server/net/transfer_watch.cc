// SPDX-License-Identifier: Apache-2.0

#include "server/net/transfer_watch.h"

#include <limits>

namespace crout {

size_t LargestMessage(const TransferLimits& limits) {
  constexpr auto kAll = std::numeric_limits<size_t>::max();
  if (limits.min_rate == 0) return kAll;
  const double bytes =
      static_cast<double>(limits.min_rate) * absl::ToDoubleSeconds(limits.idle_timeout);
  return bytes < static_cast<double>(kAll) ? static_cast<size_t>(bytes) : kAll;
}

void TransferWatch::StartPeerTurn(Clock::time_point now) {
  if (turn_start_) return;
  turn_start_ = now;
  idle_since_ = now;
}

void TransferWatch::EndPeerTurn(Clock::time_point now) {
  if (!turn_start_) return;
  finished_turns_ += now - *turn_start_;
  turn_start_.reset();
}

void TransferWatch::Moved(size_t bytes, Clock::time_point now) {
  if (bytes == 0) return;
  bytes_ += bytes;
  idle_since_ = now;
}

TransferWatch::Fault TransferWatch::Check(Clock::time_point now) const {
  if (absl::FromChrono(now - start_) > limits_.max_time) return Fault::kLong;
  if (!turn_start_) return Fault::kNone;
  if (absl::FromChrono(now - *idle_since_) > limits_.idle_timeout) return Fault::kIdle;
  const bool no_idle_limit = limits_.idle_timeout == absl::InfiniteDuration();
  const absl::Duration counted = absl::FromChrono(finished_turns_ + (now - *turn_start_)) -
                                 (no_idle_limit ? kGrace : limits_.idle_timeout);
  const double min_bytes = static_cast<double>(limits_.min_rate) * absl::ToDoubleSeconds(counted);
  return static_cast<double>(bytes_) < min_bytes ? Fault::kSlow : Fault::kNone;
}

}  // namespace crout
