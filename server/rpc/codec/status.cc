// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/status.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace crout {
namespace {

constexpr size_t kMaxMessageBytes = 2048;

constexpr char kMessageFieldUrl[] = "crout/message-field";

// Returns the path of the invalid field, or nothing.
std::optional<std::string> BadFieldOf(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return std::nullopt;
  if (const auto field = status.GetPayload(kMessageFieldUrl)) return std::string(*field);
  return FieldOf(status);
}

void AddDetail(google::rpc::Status* status, const google::protobuf::Message& detail) {
  status->add_details()->PackFrom(detail);
}

}  // namespace

absl::Status BadMessageField(absl::string_view field, absl::string_view description) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", description));
  status.SetPayload(kMessageFieldUrl, absl::Cord(field));
  return status;
}

absl::Status UnknownValue(absl::string_view field, int value,
                          const google::protobuf::EnumDescriptor& type) {
  std::string defined;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() == 0) continue;  // UNSPECIFIED
    absl::StrAppend(&defined, defined.empty() ? "" : ", ", type.value(i)->name());
  }
  return BadField(field, absl::StrCat("unknown value ", value, ": use one of ", defined));
}

grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContextBase* context) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message(status.message().substr(0, kMaxMessageBytes));

  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_domain("crout");
  info.set_reason(ReasonOf(status).value_or(absl::StatusCodeToString(status.code())));
  AddDetail(&details, info);
  if (const std::optional<double> seconds = RetryAfterOf(status)) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(static_cast<int64_t>(*seconds));
    retry.mutable_retry_delay()->set_nanos(
        static_cast<int32_t>((*seconds - std::floor(*seconds)) * 1e9));
    AddDetail(&details, retry);
    context->AddTrailingMetadata("grpc-retry-pushback-ms",
                                 absl::StrCat(static_cast<int64_t>(std::ceil(*seconds * 1000))));
  }
  if (const std::optional<QuotaViolation> quota = QuotaOf(status)) {
    google::rpc::QuotaFailure failure;
    auto* violation = failure.add_violations();
    violation->set_subject(quota->subject);
    violation->set_description(quota->description);
    AddDetail(&details, failure);
  }
  if (const std::optional<std::string> field = BadFieldOf(status)) {
    google::rpc::BadRequest bad;
    auto* violation = bad.add_field_violations();
    violation->set_field(*field);
    violation->set_description(message);
    AddDetail(&details, bad);
  }
  return {code, message, details.SerializeAsString()};
}

}  // namespace crout
