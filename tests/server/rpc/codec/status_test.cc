// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/codec/status.h"

#include <string>

#include "absl/status/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/server_callback.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"

namespace crout::status_test {
namespace {

template <class Detail>
bool Find(const grpc::Status& status, Detail* detail) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return false;
  for (const auto& any : details.details()) {
    if (any.UnpackTo(detail)) return true;
  }
  return false;
}

TEST(ToGrpcStatusTest, CodesAgree) {
  grpc::CallbackServerContext context;
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus(), &context).ok());
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status =
        ToGrpcStatus(absl::Status(static_cast<absl::StatusCode>(code), "why"), &context);
    EXPECT_EQ(status.error_code(), code);
    EXPECT_EQ(status.error_message(), "why");
    google::rpc::ErrorInfo info;
    ASSERT_TRUE(Find(status, &info));
    EXPECT_EQ(info.reason(), absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
    EXPECT_EQ(info.domain(), "crout");
  }
}

TEST(ToGrpcStatusTest, ReasonAndRetryDelayAreInTheDetails) {
  grpc::CallbackServerContext context;
  const absl::Status status =
      WithRetryAfter(WithReason(absl::ResourceExhaustedError("full"), kReasonQueueFull), 2.25);
  const grpc::Status mapped = ToGrpcStatus(status, &context);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(Find(mapped, &info));
  EXPECT_EQ(info.reason(), "QUEUE_FULL");
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(Find(mapped, &retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 250000000);
}

TEST(ToGrpcStatusTest, ABadFieldIsInTheDetails) {
  grpc::CallbackServerContext context;
  const grpc::Status mapped = ToGrpcStatus(BadField("header.matrix", "not square"), &context);
  google::rpc::BadRequest bad;
  ASSERT_TRUE(Find(mapped, &bad));
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "header.matrix");
}

TEST(ToGrpcStatusTest, AFieldOfAMessageIsInTheDetails) {
  grpc::CallbackServerContext context;
  const absl::Status status = BadMessageField("data", "too long");
  EXPECT_EQ(WithFieldPrefix(status, "header."), status) << "the path is complete";
  google::rpc::BadRequest bad;
  ASSERT_TRUE(Find(ToGrpcStatus(status, &context), &bad));
  EXPECT_EQ(bad.field_violations(0).field(), "data");
}

TEST(ToGrpcStatusTest, OnlyInvalidArgumentsHaveFieldViolations) {
  grpc::CallbackServerContext context;
  const absl::Status status = FieldError(absl::StatusCode::kFailedPrecondition, "rhs", "no batch");
  google::rpc::BadRequest bad;
  EXPECT_FALSE(Find(ToGrpcStatus(status, &context), &bad));
}

TEST(FieldPrefixTest, IsAddedToTheFieldAndTheMessage) {
  const absl::Status status = WithReason(
      FieldError(absl::StatusCode::kFailedPrecondition, "rhs", "3 rows"), kReasonShapeMismatch);
  const absl::Status prefixed = WithFieldPrefix(status, "header.");
  EXPECT_EQ(prefixed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(prefixed.message(), "header.rhs: 3 rows");
  EXPECT_EQ(FieldOf(prefixed), "header.rhs");
  EXPECT_EQ(ReasonOf(prefixed), kReasonShapeMismatch);
}

TEST(FieldPrefixTest, IsNotAddedWithoutAField) {
  const absl::Status status = absl::NotFoundError("no such factor");
  EXPECT_EQ(WithFieldPrefix(status, "header."), status);
  EXPECT_TRUE(WithFieldPrefix(absl::OkStatus(), "header.").ok());
}

TEST(ToGrpcStatusTest, ALongMessageIsTruncated) {
  grpc::CallbackServerContext context;
  const grpc::Status mapped = ToGrpcStatus(BadField("f", std::string(100000, 'x')), &context);
  EXPECT_LE(mapped.error_message().size(), 2048u);
  EXPECT_LE(mapped.error_details().size(), 8192u);
}

}  // namespace
}  // namespace crout::status_test
