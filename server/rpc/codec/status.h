// SPDX-License-Identifier: Apache-2.0

// Converts absl::Status to grpc::Status. No other code makes this conversion.
#ifndef CROUT_SERVER_RPC_CODEC_STATUS_H_
#define CROUT_SERVER_RPC_CODEC_STATUS_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/generated_enum_reflection.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/engine/error.h"

namespace crout {

// Error reasons of the RPC layer. server/engine/error.h defines the reasons of the queue, the
// budgets and the cache, and server/net/transfer_watch.h those of uploads.
inline constexpr std::string_view kReasonSeriesIdle = "SERIES_IDLE";
inline constexpr std::string_view kReasonJobStalled = "JOB_STALLED";

// Returns INVALID_ARGUMENT for a field of a message or of the metadata. `field` is its complete
// path. Fields of a request use BadField(), whose path is relative to the request.
absl::Status BadMessageField(absl::string_view field, absl::string_view description);

// Returns INVALID_ARGUMENT for a number that the enum of `field` does not define. The message lists
// the defined values.
absl::Status UnknownValue(absl::string_view field, int value,
                          const google::protobuf::EnumDescriptor& type);
template <class Enum>
absl::Status UnknownValue(absl::string_view field, Enum value) {
  return UnknownValue(field, static_cast<int>(value), *google::protobuf::GetEnumDescriptor<Enum>());
}

// Converts the code and the message of `status` and adds google.rpc details:
// - ErrorInfo with the reason set by WithReason; by default the name of the code.
// - RetryInfo if WithRetryAfter was used; `context` then also gets the trailer
//   grpc-retry-pushback-ms.
// - QuotaFailure if WithQuota was used.
// - BadRequest for BadField and BadMessageField.
// Messages are cut at 2 KiB; details stay under 8 KiB.
grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContextBase* context);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_STATUS_H_
