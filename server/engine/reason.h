// SPDX-License-Identifier: Apache-2.0

// What a status says to programs: a stable reason and, where it helps, when to try again. The RPC
// layer turns both into google.rpc details.
#ifndef CROUT_SERVER_ENGINE_REASON_H_
#define CROUT_SERVER_ENGINE_REASON_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace crout {

inline constexpr std::string_view kReasonQueueFull = "QUEUE_FULL";
inline constexpr std::string_view kReasonMemoryExhausted = "MEMORY_EXHAUSTED";
inline constexpr std::string_view kReasonHandleUnknown = "HANDLE_UNKNOWN";
inline constexpr std::string_view kReasonHandleExpired = "HANDLE_EXPIRED";
inline constexpr std::string_view kReasonHandleEvicted = "HANDLE_EVICTED";
inline constexpr std::string_view kReasonHandleReleased = "HANDLE_RELEASED";
inline constexpr std::string_view kReasonDeviceLost = "DEVICE_LOST";
inline constexpr std::string_view kReasonRequestInProgress = "REQUEST_IN_PROGRESS";
inline constexpr std::string_view kReasonDraining = "DRAINING";
inline constexpr std::string_view kReasonDataLoss = "DATA_LOSS";

// `status`, not OK, with the reason attached; an earlier one is replaced.
absl::Status WithReason(absl::Status status, std::string_view reason);
std::optional<std::string> ReasonOf(const absl::Status& status);

// `status`, not OK, with the advice to try again after that many seconds.
absl::Status WithRetryAfter(absl::Status status, double seconds);
std::optional<double> RetryAfterOf(const absl::Status& status);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_REASON_H_
