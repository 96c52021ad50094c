// SPDX-License-Identifier: Apache-2.0

#include "server/engine/reason.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace crout {
namespace {

constexpr char kReasonUrl[] = "crout/reason";
constexpr char kRetryUrl[] = "crout/retry-seconds";

}  // namespace

absl::Status WithReason(absl::Status status, std::string_view reason) {
  status.SetPayload(kReasonUrl, absl::Cord(std::string(reason)));
  return status;
}

std::optional<std::string> ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonUrl);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

absl::Status WithRetryAfter(absl::Status status, double seconds) {
  status.SetPayload(kRetryUrl, absl::Cord(absl::StrCat(seconds)));
  return status;
}

std::optional<double> RetryAfterOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryUrl);
  double seconds = 0;
  if (!payload.has_value() || !absl::SimpleAtod(std::string(*payload), &seconds)) {
    return std::nullopt;
  }
  return seconds;
}

}  // namespace crout
