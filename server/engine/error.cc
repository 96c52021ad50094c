// SPDX-License-Identifier: Apache-2.0

#include "server/engine/error.h"

#include <new>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"

namespace crout {
namespace {

constexpr char kFieldUrl[] = "crout/field";
constexpr char kReasonUrl[] = "crout/reason";
constexpr char kRetryUrl[] = "crout/retry-seconds";
constexpr char kQuotaUrl[] = "crout/quota";  // subject, newline, description

std::optional<std::string> TextOf(const absl::Status& status, absl::string_view url) {
  const auto payload = status.GetPayload(url);
  return payload ? std::optional(std::string(*payload)) : std::nullopt;
}

}  // namespace

absl::Status WithReason(absl::Status status, std::string_view reason) {
  status.SetPayload(kReasonUrl, absl::Cord(std::string(reason)));
  return status;
}

std::optional<std::string> ReasonOf(const absl::Status& status) {
  return TextOf(status, kReasonUrl);
}

absl::Status WithRetryAfter(absl::Status status, double seconds) {
  status.SetPayload(kRetryUrl, absl::Cord(absl::StrCat(seconds)));
  return status;
}

std::optional<double> RetryAfterOf(const absl::Status& status) {
  const std::optional<std::string> text = TextOf(status, kRetryUrl);
  double seconds = 0;
  if (!text || !absl::SimpleAtod(*text, &seconds)) return std::nullopt;
  return seconds;
}

absl::Status WithQuota(absl::Status status, const QuotaViolation& violation) {
  status.SetPayload(kQuotaUrl,
                    absl::Cord(absl::StrCat(violation.subject, "\n", violation.description)));
  return status;
}

std::optional<QuotaViolation> QuotaOf(const absl::Status& status) {
  const std::optional<std::string> text = TextOf(status, kQuotaUrl);
  if (!text) return std::nullopt;
  const size_t end = text->find('\n');
  return QuotaViolation{text->substr(0, end), text->substr(end + 1)};
}

absl::Status OutOfMemory() {
  const absl::Status status = OutOfSystemMemory();
  try {
    return WithReason(status, kReasonMemoryExhausted);
  } catch (const std::bad_alloc&) {
    return status;
  }
}

absl::Status FieldError(absl::StatusCode code, absl::string_view field,
                        absl::string_view description) {
  absl::Status status(code, absl::StrCat(field, ": ", description));
  status.SetPayload(kFieldUrl, absl::Cord(field));
  return status;
}

absl::Status BadField(absl::string_view field, absl::string_view description) {
  return FieldError(absl::StatusCode::kInvalidArgument, field, description);
}

std::optional<std::string> FieldOf(const absl::Status& status) { return TextOf(status, kFieldUrl); }

absl::Status WithFieldPrefix(absl::Status status, absl::string_view prefix) {
  const std::optional<std::string> field = FieldOf(status);
  if (!field) return status;
  absl::Status prefixed(status.code(), absl::StrCat(prefix, status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { prefixed.SetPayload(url, payload); });
  prefixed.SetPayload(kFieldUrl, absl::Cord(absl::StrCat(prefix, *field)));
  return prefixed;
}

}  // namespace crout
