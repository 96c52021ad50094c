// SPDX-License-Identifier: Apache-2.0

// The one place where an absl::Status becomes a grpc::Status.
#ifndef CROUT_SERVER_RPC_CODEC_STATUS_H_
#define CROUT_SERVER_RPC_CODEC_STATUS_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace crout {

// Reasons that arise at this edge; those of the queue, the budgets and the cache stand in
// server/engine/reason.h.
inline constexpr std::string_view kReasonShapeMismatch = "SHAPE_MISMATCH";
inline constexpr std::string_view kReasonSingular = "SINGULAR_MATRIX";
inline constexpr std::string_view kReasonUploadIdle = "UPLOAD_IDLE";
inline constexpr std::string_view kReasonUploadSlow = "UPLOAD_SLOW";
inline constexpr std::string_view kReasonSeriesIdle = "SERIES_IDLE";
inline constexpr std::string_view kReasonMatrixGone = "MATRIX_GONE";
inline constexpr std::string_view kReasonPatternMismatch = "PATTERN_MISMATCH";

// INVALID_ARGUMENT for one field of a request: the wire carries it as google.rpc.BadRequest.
// `field` is the path, as in "header.matrix.dense.rows"; the message says what is wrong and what
// would be right.
absl::Status BadField(absl::string_view field, absl::string_view description);

// The code and message of `status`, with google.rpc details: ErrorInfo with the reason (that of
// WithReason, else a general one for the code), RetryInfo where WithRetryAfter was used (also as
// the grpc-retry-pushback-ms trailer of `context`), BadRequest for BadField. Messages are cut at
// 2 KiB, details stay under 8 KiB.
grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContextBase* context);

// RESOURCE_EXHAUSTED (reason MEMORY_EXHAUSTED): the system, not a budget, has no memory left.
absl::Status OutOfMemory();

// "OK", "NOT_FOUND", ...: the label value and the log's word.
std::string_view CodeName(grpc::StatusCode code);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_STATUS_H_
