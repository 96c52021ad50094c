// SPDX-License-Identifier: Apache-2.0

#include "crout/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/grpc_status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace crout {
inline namespace api {
namespace {

// Returns the payload of type Detail, if there is one and it can be parsed.
template <class Detail>
std::optional<Detail> PayloadOf(const absl::Status& status) {
  const auto payload =
      status.GetPayload(absl::StrCat("type.googleapis.com/", Detail::descriptor()->full_name()));
  Detail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

// True for the statuses of gRPC for a stream that the peer has reset.
bool IsReset(const grpc::Status& status) {
  return absl::StartsWith(status.error_message(), "Received RST_STREAM") ||
         absl::StartsWith(status.error_message(), "Stream removed");
}

}  // namespace

absl::Status internal::ToAbslStatus(const grpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  const bool readable = details.ParseFromString(status.error_details());
  // A proxy may reset the stream after the status, if the upload has not ended. gRPC then replaces
  // the code.
  if (IsReset(status)) {
    result = readable && details.code() != 0
                 ? absl::Status(static_cast<absl::StatusCode>(details.code()), details.message())
                 : absl::UnavailableError(absl::StrCat("the server or a proxy ended the call: ",
                                                       status.error_message()));
  }
  if (result.ok() || !readable) return result;
  for (const google::protobuf::Any& detail : details.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

std::string Reason(const absl::Status& status) {
  const auto info = PayloadOf<google::rpc::ErrorInfo>(status);
  return info.has_value() ? info->reason() : std::string();
}

std::optional<absl::Duration> RetryDelay(const absl::Status& status) {
  const auto info = PayloadOf<google::rpc::RetryInfo>(status);
  if (!info.has_value() || !info->has_retry_delay()) return std::nullopt;
  return absl::Seconds(info->retry_delay().seconds()) +
         absl::Nanoseconds(info->retry_delay().nanos());
}

bool IsUnreachable(const absl::Status& status) {
  return absl::IsUnavailable(status) && !PayloadOf<google::rpc::ErrorInfo>(status).has_value();
}

}  // namespace api
}  // namespace crout
