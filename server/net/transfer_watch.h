// SPDX-License-Identifier: Apache-2.0

// Checks that the peer of an upload or a reply keeps within the server's transfer limits.
#ifndef CROUT_SERVER_NET_TRANSFER_WATCH_H_
#define CROUT_SERVER_NET_TRANSFER_WATCH_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include "absl/time/time.h"

namespace crout {

// Reasons of the statuses of transfers that exceed the limits.
inline constexpr std::string_view kReasonUploadIdle = "UPLOAD_IDLE";
inline constexpr std::string_view kReasonUploadSlow = "UPLOAD_SLOW";

// Limits of one transfer. The peer's turn is the time in which the server waits for the peer.
struct TransferLimits {
  // Longest time without a payload byte during the peer's turn. Infinite: no limit.
  absl::Duration idle_timeout = absl::Seconds(30);
  // Minimum average rate in bytes per second over all turns of the peer. The first idle_timeout of
  // that time is not counted, to tolerate short pauses (TransferWatch::kGrace if idle_timeout is
  // infinite). 0: no limit.
  size_t min_rate = size_t{64} << 10;
  // Longest duration of the whole transfer, including the server's turns. Infinite: no limit.
  absl::Duration max_time = absl::Hours(1);
};

// Returns the number of bytes that a peer at min_rate moves within idle_timeout. A message counts
// only when it is complete, so a larger message at this rate would time out. Returns the largest
// size_t if either limit is off.
size_t LargestMessage(const TransferLimits& limits);

// Watches one upload or one reply. A stream with several transfers has one watch for each. The time
// in which the server is busy counts only toward max_time. Not thread-safe.
class TransferWatch {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Fault { kNone, kIdle, kSlow, kLong };

  static constexpr absl::Duration kGrace = absl::Seconds(30);

  // Starts the transfer at `now`, in the server's turn.
  TransferWatch(const TransferLimits& limits, Clock::time_point now)
      : limits_(limits), start_(now) {}

  // StartPeerTurn() starts the peer's turn, EndPeerTurn() the server's. No effect if that turn is
  // already running.
  void StartPeerTurn(Clock::time_point now);
  void EndPeerTurn(Clock::time_point now);

  // Records that `bytes` of payload moved. Only payload resets the idle timeout.
  void Moved(size_t bytes, Clock::time_point now);

  // Returns the limit that the transfer exceeds at `now`.
  Fault Check(Clock::time_point now) const;

 private:
  const TransferLimits limits_;
  const Clock::time_point start_;
  std::optional<Clock::time_point> turn_start_;  // start of the peer's current turn, if any
  std::optional<Clock::time_point> idle_since_;  // when the turn began or the last byte moved
  Clock::duration finished_turns_{};             // total of the peer's finished turns
  size_t bytes_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_TRANSFER_WATCH_H_
