// SPDX-License-Identifier: Apache-2.0

// Tests the lifecycle of a factor with the client library and a real daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::lifecycle_test {
namespace {

using crout::testing::BackwardError;
using crout::testing::FactorRatio;
using crout::testing::FailsWith;
using crout::testing::HostMatrix;
using crout::testing::kThreshold;
using crout::testing::NormInf;
using crout::testing::NormOne;
using crout::testing::RandomMatrix;
using crout::testing::SolveRatio;

class LifecycleTest : public ::testing::Test {
 protected:
  static MatrixSource Square(const HostMatrix& a, int64_t n) {
    return MatrixSource::Dense(absl::MakeConstSpan(a), n, n);
  }
  static MatrixSource Rhs(const HostMatrix& b, int64_t n) {
    const int64_t nrhs = n == 0 ? 1 : static_cast<int64_t>(b.size()) / n;
    return MatrixSource::Dense(absl::MakeConstSpan(b), n, nrhs);
  }

  Daemon daemon_;
  std::unique_ptr<Client> client_ = daemon_.NewClient();
};

TEST_F(LifecycleTest, FactorSolveDescribeListRenewRelease) {
  constexpr int64_t n = 200;
  const HostMatrix a = RandomMatrix(n, n, 1);
  const HostMatrix b = RandomMatrix(n, 3, 2);
  CacheOptions cache;
  cache.name = "first";
  ASSERT_OK_AND_ASSIGN(const FactorDescription factor, client_->Factor(Square(a, n), {}, cache));
  EXPECT_THAT(factor.handle, ::testing::MatchesRegex("[a-z2-7]{26}"));
  EXPECT_EQ(factor.n, n);
  EXPECT_EQ(factor.info, 0);
  EXPECT_EQ(factor.version, 1);
  EXPECT_EQ(factor.device, "host");
  EXPECT_EQ(factor.name, "first");
  EXPECT_NE(factor.algorithm.value(), Algorithm::kAuto);
  EXPECT_NEAR(factor.norm_one / NormOne(a, n), 1, 1e-12);
  EXPECT_NEAR(factor.norm_inf / NormInf(a, n), 1, 1e-12);
  EXPECT_GT(factor.pivot_growth, 0);
  EXPECT_GT(factor.bytes, n * n * 8);
  EXPECT_GT(factor.timings.total_seconds, 0);
  EXPECT_GT(factor.timings.factor_seconds, 0);
  // crout::Factor computes the duration of the default lease from these two times.
  EXPECT_EQ(factor.lease_expire_time.value() - factor.create_time.value(), absl::Hours(1));

  for (const bool transpose : {false, true}) {
    SolveOptions options;
    if (transpose) options.operation = Operation::kTranspose;
    HostMatrix x(n * 3);
    SpanSink sink(absl::MakeSpan(x));
    ASSERT_OK_AND_ASSIGN(const SolveResult result,
                         client_->Solve(factor.handle, Rhs(b, n), options, &sink));
    const Op op = transpose ? Op::kTranspose : Op::kNone;
    EXPECT_LT(SolveRatio(a, n, op, x, b, 3, DType::kFloat64), kThreshold);
    EXPECT_NEAR(result.backward_error.value(), BackwardError(a, n, op, x, b, 3), 1e-16);
    EXPECT_EQ(result.factor_version, 1);
    EXPECT_EQ(result.nrhs, 3);
  }

  ASSERT_OK_AND_ASSIGN(const FactorDescription described, client_->Describe(factor.handle));
  EXPECT_EQ(described.handle, factor.handle);
  int listed = 0;
  ASSERT_OK(client_->List("first", [&](const FactorDescription&) { return ++listed > 0; }));
  EXPECT_EQ(listed, 1);
  ASSERT_OK(client_->Renew(factor.handle, absl::Minutes(5)));
  ASSERT_OK(client_->Release(factor.handle));
  EXPECT_EQ(client_->Describe(factor.handle).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LifecycleTest, EveryTypeLayoutAndSize) {
  for (const int64_t n : {0, 1, 2, 3, 33, 129}) {
    const HostMatrix a = RandomMatrix(n, n, 7);
    const std::vector<float> a32(a.begin(), a.end());
    const HostMatrix b = RandomMatrix(n, 2, 8);
    const std::vector<float> b32(b.begin(), b.end());
    for (const StorageOrder layout : {StorageOrder::kColumnMajor, StorageOrder::kRowMajor}) {
      // In row-major order, the bytes of A are those of its transpose.
      const Op op = layout == StorageOrder::kRowMajor ? Op::kTranspose : Op::kNone;
      for (const bool single : {false, true}) {
        SCOPED_TRACE(absl::StrCat("n=", n, " layout=", Name(layout), " float32=", single));
        ASSERT_OK_AND_ASSIGN(
            const FactorDescription factor,
            client_->Factor(single ? MatrixSource::Dense(absl::MakeConstSpan(a32), n, n, layout)
                                   : MatrixSource::Dense(absl::MakeConstSpan(a), n, n, layout),
                            {}, {}));
        BufferSink sink;
        ASSERT_OK(client_->Solve(factor.handle,
                                 single ? MatrixSource::Dense(absl::MakeConstSpan(b32), n, 2)
                                        : MatrixSource::Dense(absl::MakeConstSpan(b), n, 2),
                                 {}, &sink));
        const HostMatrix x =
            single ? HostMatrix(sink.values<float>().begin(), sink.values<float>().end())
                   : HostMatrix(sink.values<double>().begin(), sink.values<double>().end());
        ASSERT_EQ(x.size(), static_cast<size_t>(2 * n));
        const DType dtype = single ? DType::kFloat32 : DType::kFloat64;
        if (n > 0) {
          EXPECT_LT(SolveRatio(crout::testing::Rounded(a, dtype), n, op, x,
                               crout::testing::Rounded(b, dtype), 2, dtype),
                    kThreshold);
        }
      }
    }
  }
}

TEST_F(LifecycleTest, FactorAndSolveWithAndWithoutKeeping) {
  constexpr int64_t n = 100;
  const HostMatrix a = RandomMatrix(n, n, 3);
  const HostMatrix b = RandomMatrix(n, 1, 4);
  for (const bool keep : {false, true}) {
    FactorAndSolveOptions options;
    if (keep) options.cache.emplace();
    FactorDescription factor;
    HostMatrix x(n);
    SpanSink sink(absl::MakeSpan(x));
    ASSERT_OK_AND_ASSIGN(const SolveResult result,
                         client_->FactorAndSolve(Square(a, n), Rhs(b, n), options, &factor, &sink));
    EXPECT_LT(SolveRatio(a, n, Op::kNone, x, b, 1, DType::kFloat64), kThreshold);
    EXPECT_LT(result.backward_error.value(), 1e-13);
    EXPECT_EQ(factor.n, n);
    EXPECT_EQ(factor.handle.empty(), !keep);
  }
  EXPECT_EQ(HoldingsOf(*client_).cached_factors, 1);
}

TEST_F(LifecycleTest, FactorsMultiplyBackToTheMatrix) {
  constexpr int64_t n = 300;
  const HostMatrix a = RandomMatrix(n, n, 5);
  for (const Algorithm algorithm : {Algorithm::kGetrf, Algorithm::kCmpp}) {
    FactorOptions options;
    options.algorithm = algorithm;
    ASSERT_OK_AND_ASSIGN(const FactorDescription factor,
                         client_->Factor(Square(a, n), options, {}));
    EXPECT_EQ(factor.algorithm, algorithm);
    DenseFactors factors;
    BufferSink lu;
    ASSERT_OK(client_->Download(factor.handle, &factors, &lu, /*include_ipiv=*/true));
    ASSERT_EQ(factors.ipiv.size(), static_cast<size_t>(n));
    const auto unit =
        factors.factor.unit_diagonal == UnitTriangle::kL ? UnitDiagonal::kL : UnitDiagonal::kU;
    EXPECT_EQ(unit, algorithm == Algorithm::kGetrf ? UnitDiagonal::kL : UnitDiagonal::kU);
    const HostMatrix packed(lu.values<double>().begin(), lu.values<double>().end());
    EXPECT_LT(FactorRatio(a, n, packed, factors.ipiv, unit, DType::kFloat64), kThreshold);
    // The permutation is the result of the interchanges.
    std::vector<int64_t> rows(n);
    for (int64_t i = 0; i < n; ++i) rows[i] = i;
    for (int64_t i = 0; i < n; ++i)
      std::swap(rows[i], rows[factors.ipiv[static_cast<size_t>(i)] - 1]);
    EXPECT_THAT(factors.permutation, ::testing::ElementsAreArray(rows));
  }
}

TEST_F(LifecycleTest, OptionsThatReportMore) {
  // diag(2, -4) has the determinant -8 and the condition number 2.
  const HostMatrix a = {2, 0, 0, -4};
  FactorOptions options;
  options.condition = true;
  options.determinant = true;
  ASSERT_OK_AND_ASSIGN(const FactorDescription factor, client_->Factor(Square(a, 2), options, {}));
  EXPECT_EQ(factor.rcond, 0.5);
  EXPECT_EQ(factor.determinant.value().sign, -1);
  EXPECT_DOUBLE_EQ(factor.determinant.value().log_abs, std::log(8.0));
  ASSERT_OK_AND_ASSIGN(const FactorDescription plain, client_->Factor(Square(a, 2), {}, {}));
  EXPECT_FALSE(plain.rcond.has_value());
  EXPECT_FALSE(plain.determinant.has_value());

  SolveOptions solve;
  solve.error_bound = true;
  solve.max_refinement_steps = 3;
  BufferSink x;
  const HostMatrix b = {1, 1};
  ASSERT_OK_AND_ASSIGN(const SolveResult result,
                       client_->Solve(factor.handle, Rhs(b, 2), solve, &x));
  EXPECT_GE(result.forward_error_bound.value(), 0);
  EXPECT_LT(result.forward_error_bound.value(), 1e-14);
  EXPECT_THAT(x.values<double>(), ::testing::ElementsAre(0.5, -0.25));
}

TEST_F(LifecycleTest, BadlyScaledMatrixIsEquilibrated) {
  constexpr int64_t n = 50;
  HostMatrix a = RandomMatrix(n, n, 6);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) a[i + j * n] *= std::ldexp(1.0, static_cast<int>(i * 8));
  }
  const HostMatrix b = RandomMatrix(n, 1, 9);
  FactorOptions options;
  options.equilibrate = Equilibrate::kAuto;
  options.condition = true;
  ASSERT_OK_AND_ASSIGN(const FactorDescription factor, client_->Factor(Square(a, n), options, {}));
  EXPECT_TRUE(factor.row_scaled);
  EXPECT_LT(factor.rcond.value(), 1e-50);
  EXPECT_GT(factor.rcond_scaled.value(), 1e-6);
  EXPECT_LT(factor.quality.value(), 1);
  HostMatrix x(n);
  SpanSink sink(absl::MakeSpan(x));
  ASSERT_OK(client_->Solve(factor.handle, Rhs(b, n), {}, &sink));
  EXPECT_LT(BackwardError(a, n, Op::kNone, x, b, 1), 1e-13);
}

TEST_F(LifecycleTest, SingularMatrixIsAResultAndNoBasisForSolves) {
  const HostMatrix a = {1, 2, 2, 4};
  FactorOptions options;
  options.condition = true;
  options.determinant = true;
  ASSERT_OK_AND_ASSIGN(const FactorDescription factor, client_->Factor(Square(a, 2), options, {}));
  EXPECT_EQ(factor.info, 2);
  EXPECT_EQ(factor.rcond, 0);
  EXPECT_EQ(factor.determinant.value().sign, 0);
  BufferSink x;
  const HostMatrix b = {1, 1};
  const auto solved = client_->Solve(factor.handle, Rhs(b, 2), {}, &x);
  EXPECT_THAT(solved, FailsWith(absl::StatusCode::kFailedPrecondition, "2"));
  EXPECT_EQ(Reason(solved.status()), "SINGULAR_MATRIX");
  FactorDescription direct;
  EXPECT_EQ(client_->FactorAndSolve(Square(a, 2), Rhs(b, 2), {}, &direct, &x).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(direct.info, 2) << "the factor comes before the refusal";
}

TEST_F(LifecycleTest, RequestIdMakesFactorIdempotent) {
  const HostMatrix a = {2, 0, 0, 2};
  CacheOptions cache;
  cache.request_id = "job-17";
  ASSERT_OK_AND_ASSIGN(const FactorDescription first, client_->Factor(Square(a, 2), {}, cache));
  ASSERT_OK_AND_ASSIGN(const FactorDescription again, client_->Factor(Square(a, 2), {}, cache));
  EXPECT_EQ(again.handle, first.handle);
  EXPECT_EQ(HoldingsOf(*client_).cached_factors, 1);
  const auto other = daemon_.NewClient("other-tenant");
  ASSERT_OK_AND_ASSIGN(const FactorDescription theirs, other->Factor(Square(a, 2), {}, cache));
  EXPECT_NE(theirs.handle, first.handle);
  ASSERT_OK(client_->Release(first.handle));
  ASSERT_OK_AND_ASSIGN(const FactorDescription anew, client_->Factor(Square(a, 2), {}, cache));
  EXPECT_NE(anew.handle, first.handle);
}

TEST_F(LifecycleTest, MatrixMarketTextSolvesAsTheDenseFormDoes) {
  const std::string text =
      "%%MatrixMarket matrix coordinate real symmetric\n% comment\n3 3 4\n1 1 4\n2 2 +5\n\n"
      "3 3 6\r\n2 1 1e0\n";
  ASSERT_OK_AND_ASSIGN(const FactorDescription factor,
                       client_->Factor(MatrixSource::MatrixMarket(text), {}, {}));
  EXPECT_EQ(factor.nnz, 5);
  const HostMatrix a = {4, 1, 0, 1, 5, 0, 0, 0, 6};
  BufferSink x;
  ASSERT_OK(client_->Solve(
      factor.handle,
      MatrixSource::MatrixMarket("%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n"), {},
      &x));
  const HostMatrix solution(x.values<double>().begin(), x.values<double>().end());
  EXPECT_LT(SolveRatio(a, 3, Op::kNone, solution, {1, 2, 3}, 1, DType::kFloat64), kThreshold);
}

TEST_F(LifecycleTest, EstimateNamesBytesBeforeAnUpload) {
  ASSERT_OK_AND_ASSIGN(const auto estimate, client_->Estimate({.n = 1000}));
  EXPECT_GE(estimate.peak_bytes, 1000 * 1000 * 8);
  EXPECT_GE(estimate.peak_bytes, estimate.cached_bytes);
  EXPECT_GT(estimate.predicted_seconds, 0);
  EXPECT_EQ(estimate.device, "host");
  EXPECT_TRUE(estimate.fits);
}

}  // namespace
}  // namespace crout::e2e::lifecycle_test
