// SPDX-License-Identifier: Apache-2.0

// Whether the peer of a transfer, an upload or a reply, keeps within the server's limits.
#ifndef CROUT_SERVER_RPC_TRANSFER_WATCH_H_
#define CROUT_SERVER_RPC_TRANSFER_WATCH_H_

#include <chrono>
#include <cstddef>
#include <optional>

#include "absl/time/time.h"

namespace crout {

// What one transfer may take.
struct TransferLimits {
  // Without a byte of payload, while the peer's turn lasts. Infinite: no limit.
  absl::Duration idle_timeout = absl::Seconds(30);
  // Bytes for each second of the peer's turns together, the first idle_timeout of them not counted
  // (or TransferWatch::kGrace, without one): a pause that is not too long does no harm. 0: no
  // limit.
  size_t min_rate = size_t{64} << 10;
  // From first to last. Infinite: no limit.
  absl::Duration max_time = absl::Hours(1);
};

// The most bytes that a peer at the least rate moves within the idle timeout: a message counts when
// it is whole, so that a larger one comes too late. All there are where one of them is no limit.
size_t LargestMessage(const TransferLimits& limits);

// One upload, or one reply; a stream that stays open between them has a watch for each. Time in
// which the server is busy is not the peer's: it counts for max_time alone. Not thread-safe.
class TransferWatch {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Fault { kNone, kIdle, kSlow, kLong };

  static constexpr absl::Duration kGrace = absl::Seconds(30);

  // Begins at `now`, with the server's turn.
  TransferWatch(const TransferLimits& limits, Clock::time_point now)
      : limits_(limits), start_(now) {}

  // It is the peer's turn from now on, or the server's. No effect if it was already.
  void Await(Clock::time_point now);
  void Rest(Clock::time_point now);

  // Payload moved: nothing else keeps a transfer alive.
  void Moved(size_t bytes, Clock::time_point now);

  // The limit that is not kept as of `now`.
  Fault Check(Clock::time_point now) const;

 private:
  const TransferLimits limits_;
  const Clock::time_point start_;
  std::optional<Clock::time_point> turn_;    // start of the peer's, if it is that
  std::optional<Clock::time_point> silent_;  // since the turn began or a byte came
  Clock::duration before_{};                 // the peer's turns that are over
  size_t bytes_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_TRANSFER_WATCH_H_
