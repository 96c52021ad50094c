// SPDX-License-Identifier: Apache-2.0

// Errors of the engine: the field of the request, a stable reason and, for some errors, a retry
// delay, as payloads of a status. The transport converts them to its own error details.
#ifndef CROUT_SERVER_ENGINE_ERROR_H_
#define CROUT_SERVER_ENGINE_ERROR_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace crout {

inline constexpr std::string_view kReasonQueueFull = "QUEUE_FULL";
inline constexpr std::string_view kReasonMemoryExhausted = "MEMORY_EXHAUSTED";
inline constexpr std::string_view kReasonPinLimit = "PIN_LIMIT";
inline constexpr std::string_view kReasonQuotaExceeded = "QUOTA_EXCEEDED";
inline constexpr std::string_view kReasonHandleUnknown = "HANDLE_UNKNOWN";
inline constexpr std::string_view kReasonHandleExpired = "HANDLE_EXPIRED";
inline constexpr std::string_view kReasonHandleEvicted = "HANDLE_EVICTED";
inline constexpr std::string_view kReasonHandleReleased = "HANDLE_RELEASED";
inline constexpr std::string_view kReasonServerRestarted = "SERVER_RESTARTED";
inline constexpr std::string_view kReasonDeviceLost = "DEVICE_LOST";
inline constexpr std::string_view kReasonGroupLost = "GROUP_LOST";
inline constexpr std::string_view kReasonRequestInProgress = "REQUEST_IN_PROGRESS";
inline constexpr std::string_view kReasonDraining = "DRAINING";
inline constexpr std::string_view kReasonDataLoss = "DATA_LOSS";
inline constexpr std::string_view kReasonStoreFailed = "STORE_FAILED";
inline constexpr std::string_view kReasonStoreFull = "STORE_FULL";
inline constexpr std::string_view kReasonShapeMismatch = "SHAPE_MISMATCH";
inline constexpr std::string_view kReasonSingular = "SINGULAR_MATRIX";
inline constexpr std::string_view kReasonMatrixGone = "MATRIX_GONE";
inline constexpr std::string_view kReasonPatternMismatch = "PATTERN_MISMATCH";
inline constexpr std::string_view kReasonSharedMemoryGone = "SHARED_MEMORY_GONE";

// Attaches a reason to `status`, replacing an earlier one. `status` must not be OK.
absl::Status WithReason(absl::Status status, std::string_view reason);
// Returns the attached reason, or nothing.
std::optional<std::string> ReasonOf(const absl::Status& status);

// Attaches a retry delay in seconds to `status`, which must not be OK.
absl::Status WithRetryAfter(absl::Status status, double seconds);
// Returns the attached retry delay in seconds, or nothing.
std::optional<double> RetryAfterOf(const absl::Status& status);

// A quota that a request exceeds.
struct QuotaViolation {
  std::string subject;  // "tenant:NAME"
  std::string description;
};
// Attaches a violation to `status`, which must not be OK.
absl::Status WithQuota(absl::Status status, const QuotaViolation& violation);
// Returns the attached violation, or nothing.
std::optional<QuotaViolation> QuotaOf(const absl::Status& status);

// Returns RESOURCE_EXHAUSTED (reason MEMORY_EXHAUSTED) for a lack of system memory. Does not throw.
absl::Status OutOfMemory();

// Returns an error about one field of a request, with the message "FIELD: DESCRIPTION". `field` is
// the path of the field within the request, for example "matrix.dense.rows". The transport adds the
// path of the request within its message (WithFieldPrefix). `description` states the error and the
// expected value.
absl::Status FieldError(absl::StatusCode code, absl::string_view field,
                        absl::string_view description);
// Returns FieldError() with INVALID_ARGUMENT.
absl::Status BadField(absl::string_view field, absl::string_view description);
// Returns the path of the field that the status is about, or nothing.
std::optional<std::string> FieldOf(const absl::Status& status);
// Prepends `prefix` to the path of the field, which starts the message of `status`. Has no effect
// if the status is not about a field.
absl::Status WithFieldPrefix(absl::Status status, absl::string_view prefix);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_ERROR_H_
