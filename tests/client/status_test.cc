// SPDX-License-Identifier: Apache-2.0

#include "crout/status.h"

#include <gtest/gtest.h>

#include <utility>

#include "client/cpp/grpc_status.h"
#include "client/cpp/retry.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace crout::client_test::status_test {
namespace {

using internal::DelayBeforeRetry;
using internal::RetryClass;
using internal::ToAbslStatus;

using grpc::StatusCode;

grpc::Status WithDetails(StatusCode code, bool error_info, int retry_ms) {
  google::rpc::Status details;
  if (error_info) {
    google::rpc::ErrorInfo info;
    info.set_reason("QUEUE_FULL");
    details.add_details()->PackFrom(info);
  }
  if (retry_ms > 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_nanos(retry_ms * 1'000'000);
    details.add_details()->PackFrom(retry);
  }
  return {code, "why", details.SerializeAsString()};
}

TEST(StatusTest, CodesMessagesAndDetailsSurvive) {
  for (int code = 1; code <= 16; ++code) {
    const auto status = ToAbslStatus({static_cast<StatusCode>(code), "why"});
    EXPECT_EQ(static_cast<int>(status.code()), code);
    EXPECT_EQ(status.message(), "why");
    EXPECT_EQ(Reason(status), "");
    EXPECT_EQ(RetryDelay(status), std::nullopt);
  }
  const auto status = ToAbslStatus(WithDetails(StatusCode::RESOURCE_EXHAUSTED, true, 250));
  EXPECT_EQ(Reason(status), "QUEUE_FULL");
  EXPECT_EQ(RetryDelay(status), absl::Milliseconds(250));
  EXPECT_TRUE(status.GetPayload("type.googleapis.com/google.rpc.ErrorInfo").has_value());
  EXPECT_TRUE(ToAbslStatus(grpc::Status::OK).ok());
}

TEST(StatusTest, DetailsThatAreNoStatusAreIgnored) {
  EXPECT_EQ(Reason(ToAbslStatus({StatusCode::INTERNAL, "why", "\xff\xff garbage"})), "");
}

TEST(StatusTest, AStreamThatThePeerResetIsUnavailable) {
  for (const auto& [code, message] :
       {std::pair(StatusCode::CANCELLED, "Received RST_STREAM with error code 8"),
        std::pair(StatusCode::INTERNAL, "Received RST_STREAM with error code 2"),
        std::pair(StatusCode::UNKNOWN, "Stream removed")}) {
    EXPECT_TRUE(IsUnreachable(ToAbslStatus({code, message}))) << message;
    google::rpc::Status sent;
    sent.set_code(StatusCode::NOT_FOUND);
    sent.set_message("gone");
    EXPECT_EQ(ToAbslStatus({code, message, sent.SerializeAsString()}), absl::NotFoundError("gone"));
  }
}

TEST(StatusTest, UnreachableIsUnavailableFromNoServer) {
  EXPECT_TRUE(IsUnreachable(absl::UnavailableError("connection refused")));
  EXPECT_FALSE(IsUnreachable(ToAbslStatus(WithDetails(StatusCode::UNAVAILABLE, true, 0))));
  EXPECT_FALSE(IsUnreachable(absl::NotFoundError("")));
}

TEST(RetryTest, DelayFollowsTheServersWordAndThePolicy) {
  const RetryPolicy policy{.max_attempts = 3, .initial_backoff = absl::Milliseconds(100)};
  const auto delay = [&](RetryClass retry_class, int attempts, StatusCode code, int retry_ms) {
    return DelayBeforeRetry(policy, retry_class, attempts,
                            ToAbslStatus(WithDetails(code, true, retry_ms)));
  };
  using enum RetryClass;
  for (const RetryClass any : {kRefusedOnly, kIdempotent}) {
    const auto server_delay = delay(any, 1, StatusCode::RESOURCE_EXHAUSTED, 250);
    ASSERT_TRUE(server_delay.has_value());
    EXPECT_GE(*server_delay, absl::Milliseconds(250));
    EXPECT_LE(*server_delay, absl::Milliseconds(300));
    EXPECT_TRUE(delay(any, 1, StatusCode::ABORTED, 250).has_value());
    // Without RetryInfo, the server does not indicate that a retry would help.
    EXPECT_FALSE(delay(any, 1, StatusCode::RESOURCE_EXHAUSTED, 0).has_value());
    EXPECT_FALSE(delay(any, 1, StatusCode::ABORTED, 0).has_value());
    EXPECT_FALSE(delay(any, 3, StatusCode::RESOURCE_EXHAUSTED, 250).has_value());
    EXPECT_FALSE(delay(any, 1, StatusCode::NOT_FOUND, 250).has_value());
    EXPECT_FALSE(delay(any, 1, StatusCode::DEADLINE_EXCEEDED, 250).has_value());
  }
  EXPECT_FALSE(delay(kRefusedOnly, 1, StatusCode::UNAVAILABLE, 0).has_value());
  const auto backoff = delay(kIdempotent, 2, StatusCode::UNAVAILABLE, 0);
  ASSERT_TRUE(backoff.has_value());
  EXPECT_GE(*backoff, absl::Milliseconds(100));
  EXPECT_LE(*backoff, absl::Milliseconds(200));
}

}  // namespace
}  // namespace crout::client_test::status_test
