// SPDX-License-Identifier: Apache-2.0

// GoogleTest matchers for absl::Status and absl::StatusOr.
#ifndef CROUT_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define CROUT_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// Matches a status with this code whose message contains `text`.
MATCHER_P2(FailsWith, code, text, "") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code && std::string(status.message()).find(text) != std::string::npos;
}

}  // namespace crout::testing

#define ASSERT_OK(expr) ASSERT_THAT(expr, ::crout::testing::IsOk())
#define EXPECT_OK(expr) EXPECT_THAT(expr, ::crout::testing::IsOk())

// Initializes the declaration `lhs` with the value of a StatusOr. Fails the test on an error.
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_(CROUT_TEST_CONCAT_(result_, __LINE__), lhs, expr)
#define ASSERT_OK_AND_ASSIGN_(result, lhs, expr) \
  auto result = (expr);                          \
  ASSERT_THAT(result, ::crout::testing::IsOk()); \
  lhs = *std::move(result)
#define CROUT_TEST_CONCAT_(a, b) CROUT_TEST_CONCAT_INNER_(a, b)
#define CROUT_TEST_CONCAT_INNER_(a, b) a##b

#endif  // CROUT_TESTS_SUPPORT_STATUS_MATCHERS_H_
