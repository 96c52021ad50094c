// SPDX-License-Identifier: Apache-2.0

// Tests that Refactorize is atomic: each concurrent Solve uses one complete version and reports its
// number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "tests/e2e/harness/daemon.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::refactorize_test {
namespace {

constexpr int64_t kOrder = 64;
constexpr int kVersions = 60;

// Returns the matrix of version v: v times the identity, so that the solution for ones has elements
// 1 / v.
std::vector<double> MatrixOf(int64_t version) {
  std::vector<double> a(kOrder * kOrder);
  for (int64_t i = 0; i < kOrder; ++i)
    a[static_cast<size_t>(i * (kOrder + 1))] = static_cast<double>(version);
  return a;
}

MatrixSource Source(const std::vector<double>& a) {
  return MatrixSource::Dense(absl::MakeConstSpan(a), kOrder, kOrder);
}

TEST(RefactorizeTest, EachSolveAnswersForTheVersionThatItNames) {
  Daemon daemon;
  const auto client = daemon.NewClient();
  const auto first = MatrixOf(1);
  ASSERT_OK_AND_ASSIGN(const auto factor, client->Factor(Source(first), {}, {}));

  std::atomic<bool> done = false;
  std::atomic<int> solves = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> solvers;
  for (int i = 0; i < 3; ++i) {
    solvers.emplace_back([&] {
      const auto own = daemon.NewClient();
      const std::vector<double> b(kOrder * 4, 1.0);
      int64_t last = 0;
      while (!done) {
        BufferSink x;
        const auto result = own->Solve(
            factor.handle, MatrixSource::Dense(absl::MakeConstSpan(b), kOrder, 4), {}, &x);
        bool right =
            result.ok() && result->factor_version >= last && result->backward_error < 1e-15;
        for (const double value : x.values<double>()) {
          right =
              right && std::abs(value * static_cast<double>(result->factor_version) - 1) < 1e-14;
        }
        if (!right) ++wrong;
        if (result.ok()) last = result->factor_version;
        ++solves;
      }
    });
  }
  int64_t version = 1;
  while (version < kVersions || solves <= 10) {
    const auto a = MatrixOf(++version);
    const auto refactored = client->Refactor(factor.handle, Source(a), {});
    EXPECT_THAT(refactored, crout::testing::IsOk());
    if (!refactored.ok()) break;
    EXPECT_EQ(refactored->version, version);
    EXPECT_EQ(refactored->handle, factor.handle);
  }
  done = true;
  for (std::thread& solver : solvers) solver.join();
  EXPECT_EQ(wrong, 0) << "of " << solves;
  EXPECT_EQ(HoldingsOf(*client).cached_factors, 1);
}

TEST(RefactorizeTest, FailureKeepsTheOldVersion) {
  Daemon daemon;
  const auto client = daemon.NewClient();
  const auto a = MatrixOf(2);
  ASSERT_OK_AND_ASSIGN(const auto factor, client->Factor(Source(a), {}, {}));
  auto bad = MatrixOf(3);
  bad.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(client->Refactor(factor.handle, Source(bad), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::vector<double> b(kOrder, 1.0);
  BufferSink x;
  ASSERT_OK_AND_ASSIGN(
      const auto result,
      client->Solve(factor.handle, MatrixSource::Dense(absl::MakeConstSpan(b), kOrder, 1), {}, &x));
  EXPECT_EQ(result.factor_version, 1);
  EXPECT_DOUBLE_EQ(x.values<double>()[0], 0.5);
}

// Without the option to replace, the call fails and reports the version that remains.
TEST(RefactorizeTest, ASingularMatrixReplacesTheFactorOnlyOnRequest) {
  Daemon daemon;
  const auto client = daemon.NewClient();
  const auto a = MatrixOf(2);
  ASSERT_OK_AND_ASSIGN(const auto factor, client->Factor(Source(a), {}, {}));
  auto singular = MatrixOf(3);
  singular.back() = 0;
  const absl::Status kept = client->Refactor(factor.handle, Source(singular), {}).status();
  EXPECT_EQ(kept.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Reason(kept), "SINGULAR_MATRIX");
  EXPECT_THAT(std::string(kept.message()), ::testing::HasSubstr("keeps version 1"));
  const std::vector<double> b(kOrder, 1.0);
  const auto rhs = MatrixSource::Dense(absl::MakeConstSpan(b), kOrder, 1);
  BufferSink x;
  ASSERT_OK_AND_ASSIGN(const auto result, client->Solve(factor.handle, rhs, {}, &x));
  EXPECT_EQ(result.factor_version, 1);
  EXPECT_DOUBLE_EQ(x.values<double>()[0], 0.5);

  ASSERT_OK_AND_ASSIGN(const auto replaced, client->Refactor(factor.handle, Source(singular),
                                                             {.replace_if_singular = true}));
  EXPECT_EQ(replaced.version, 2);
  EXPECT_EQ(replaced.info, kOrder);
  EXPECT_EQ(client->Solve(factor.handle, rhs, {}, &x).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(const auto good, client->Refactor(factor.handle, Source(a), {}));
  EXPECT_EQ(good.version, 3) << "and a good one replaces a singular one";
}

}  // namespace
}  // namespace crout::e2e::refactorize_test
