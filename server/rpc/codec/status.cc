// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/status.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <new>
#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kernels/util/allocation.h"
#include "server/engine/reason.h"

namespace crout {
namespace {

constexpr absl::string_view kFieldUrl = "crout/field";
constexpr size_t kMaxMessageBytes = 2048;

constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

void AddDetail(google::rpc::Status* status, const google::protobuf::Message& detail) {
  status->add_details()->PackFrom(detail);
}

}  // namespace

absl::Status BadField(absl::string_view field, absl::string_view description) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", description));
  status.SetPayload(kFieldUrl, absl::Cord(field));
  return status;
}

absl::Status OutOfMemory() {
  const absl::Status status = OutOfSystemMemory();
  try {
    return WithReason(status, kReasonMemoryExhausted);
  } catch (const std::bad_alloc&) {
    return status;
  }
}

std::string_view CodeName(grpc::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "UNKNOWN";
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
  info.set_reason(ReasonOf(status).value_or(std::string(CodeName(code))));
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
  if (const auto field = status.GetPayload(kFieldUrl)) {
    google::rpc::BadRequest bad;
    auto* violation = bad.add_field_violations();
    violation->set_field(std::string(*field));
    violation->set_description(message);
    AddDetail(&details, bad);
  }
  return {code, message, details.SerializeAsString()};
}

}  // namespace crout
