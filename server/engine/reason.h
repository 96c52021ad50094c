// SPDX-License-Identifier: Apache-2.0

// Machine-readable payloads of a status: a stable reason and, for some errors, a retry delay. The
// RPC layer converts them to google.rpc details.
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

// Attaches a reason to `status`, replacing an earlier one. `status` must not be OK.
absl::Status WithReason(absl::Status status, std::string_view reason);
// Returns the attached reason, or nothing.
std::optional<std::string> ReasonOf(const absl::Status& status);

// Attaches a retry delay in seconds to `status`, which must not be OK.
absl::Status WithRetryAfter(absl::Status status, double seconds);
// Returns the attached retry delay in seconds, or nothing.
std::optional<double> RetryAfterOf(const absl::Status& status);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_REASON_H_
