// SPDX-License-Identifier: Apache-2.0

// Tests that the service returns the same bits as the kernels, for every method and solver of the
// host device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/host/device/host_device.h"
#include "kernels/jobs/direct_solve.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

// After the kernels, whose SolveOptions and other types the client's types would hide.
#include "tests/e2e/harness/daemon.h"

namespace crout::e2e::methods_test {
namespace {

using crout::testing::HostFactor;
using crout::testing::HostMatrix;
using crout::testing::JobRunner;

constexpr int64_t kOrder = 150;
constexpr int64_t kNrhs = 3;

// Both the service and the kernels use one core, because the number of threads affects the order of
// some sums.
class MethodsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto info = client_->ServerInfo();
    ASSERT_THAT(info, crout::testing::IsOk());
    ASSERT_EQ(info->devices.size(), 1u);
    algorithms_ = info->devices[0].algorithms;
    solvers_ = info->devices[0].solvers;
    ASSERT_GE(algorithms_.size(), device_->algorithms().size());
    ASSERT_EQ(solvers_.size(), device_->solvers().size());
  }

  static MatrixSource Source(const HostMatrix& matrix, int64_t cols) {
    return MatrixSource::Dense(absl::MakeConstSpan(matrix), kOrder, cols);
  }

  // Runs `factor`, a call that expects progress reports. Holds each phase until the previous report
  // has been sent, because the server skips reports while the client reads slowly.
  void RunAwaitingReports(const std::function<void()>& factor);
  HostFactor Download(const std::string& handle, DType dtype);
  void ExpectSameFactors(Algorithm algorithm, DType dtype);
  void ExpectSameSolutions(const std::string& handle, const Factorization& factor);

  Daemon daemon_{{"--host-threads=1"}, "croutd_test"};
  const std::unique_ptr<Client> client_ = daemon_.NewClient();
  const std::unique_ptr<Device> device_ = host::MakeDevice({.threads = 1});
  JobRunner runner_{*device_};
  // Can be factored without pivoting.
  const HostMatrix a_ = crout::testing::GalleryNamed("diagonally_dominant").make(kOrder);
  const HostMatrix b_ = crout::testing::RandomMatrix(kOrder, kNrhs, 3);
  std::vector<Algorithm> algorithms_;
  std::vector<Solver> solvers_;
};

void MethodsTest::RunAwaitingReports(const std::function<void()>& factor) {
  const RemoteFailpoints& failpoints = daemon_.failpoints();
  daemon_.AwaitRest();
  const int sent = failpoints.reached("call.sent");
  failpoints.Hold("scheduler.job");
  failpoints.Hold("factorize.factor");
  std::thread letting_go([&] {
    failpoints.AwaitReached("call.sent", sent + 1);  // the report that it is queued
    failpoints.Release("scheduler.job");
    failpoints.AwaitReached("call.sent", sent + 2);  // the report that its work begins
    failpoints.Release("factorize.factor");
  });
  factor();
  letting_go.join();
}

HostFactor MethodsTest::Download(const std::string& handle, DType dtype) {
  DenseFactors factors;
  BufferSink lu;
  EXPECT_THAT(client_->Download(handle, &factors, &lu, /*include_ipiv=*/true),
              crout::testing::IsOk());
  HostFactor factor;
  factor.ipiv.assign(factors.ipiv.begin(), factors.ipiv.end());
  if (dtype == DType::kFloat32) {
    factor.lu.assign(lu.values<float>().begin(), lu.values<float>().end());
  } else {
    factor.lu.assign(lu.values<double>().begin(), lu.values<double>().end());
  }
  return factor;
}

void MethodsTest::ExpectSameSolutions(const std::string& handle, const Factorization& factor) {
  int compared = 0;
  for (const Solver solver : solvers_) {
    SCOPED_TRACE(Name(solver));
    crout::testing::SolveRequest request;
    request.solver = Name(solver);
    HostMatrix x(b_.size());
    SpanSink sink(absl::MakeSpan(x));
    const auto expected = runner_.Solve(factor, b_, kNrhs, request);
    const auto result = client_->Solve(handle, Source(b_, kNrhs), {.solver = solver}, &sink);
    ASSERT_EQ(result.status().code(), expected.status().code()) << result.status();
    if (!expected.ok()) {
      EXPECT_EQ(expected.status().code(), absl::StatusCode::kFailedPrecondition);
      continue;
    }
    EXPECT_EQ(x, expected->x);
    EXPECT_EQ(result->backward_error, expected->summary.backward_error);
    ++compared;
  }
  EXPECT_GE(compared, 3);
}

void MethodsTest::ExpectSameFactors(Algorithm algorithm, DType dtype) {
  crout::testing::FactorRequest request;
  request.algorithm = Name(algorithm);
  request.factor_dtype = dtype;
  const auto expected = runner_.Factor(a_, kOrder, request);
  ASSERT_THAT(expected, crout::testing::IsOk());
  FactorOptions options;
  options.algorithm = algorithm;
  options.factor_dtype = dtype == DType::kFloat32 ? Dtype::kFloat32 : Dtype::kFloat64;
  const auto factor = client_->Factor(Source(a_, kOrder), options, {});
  ASSERT_THAT(factor, crout::testing::IsOk());
  EXPECT_EQ(factor->algorithm, algorithm);
  EXPECT_EQ(factor->pivot_growth, expected->summary.pivot_growth);
  const auto mine = runner_.Download(*expected);
  ASSERT_THAT(mine, crout::testing::IsOk());
  const HostFactor theirs = Download(factor->handle, dtype);
  EXPECT_EQ(theirs.ipiv, mine->ipiv);
  EXPECT_EQ(theirs.lu, mine->lu);
  ExpectSameSolutions(factor->handle, *expected);
}

TEST_F(MethodsTest, FactorsAndSolutionsOverTheWire) {
  int compared = 0;
  for (const Algorithm algorithm : algorithms_) {
    if (algorithm == Algorithm::kGaussJordan) continue;  // no factors; has its own test
    for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
      SCOPED_TRACE(Name(algorithm) + (dtype == DType::kFloat32 ? " float32" : ""));
      ExpectSameFactors(algorithm, dtype);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2 * static_cast<int>(device_->algorithms().size()));
}

TEST_F(MethodsTest, LongFactorizationsReportProgress) {
  constexpr int64_t kLarge = 2048;
  const HostMatrix a = crout::testing::GalleryNamed("diagonally_dominant").make(kLarge);
  for (const Algorithm algorithm :
       {Algorithm::kGem, Algorithm::kCmpp, Algorithm::kBlockLu, Algorithm::kIcmpp}) {
    SCOPED_TRACE(Name(algorithm));
    FactorOptions options;
    options.algorithm = algorithm;
    std::vector<int64_t> reported;
    CallOptions call;
    call.on_progress = [&](const ProgressUpdate& update) {
      if (!update.job || update.job->columns_done == 0) return;
      EXPECT_EQ(update.job->phase, Phase::kFactor);
      EXPECT_EQ(update.job->columns, kLarge);
      reported.push_back(update.job->columns_done);
    };
    RunAwaitingReports([&] {
      EXPECT_THAT(client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), kLarge, kLarge),
                                  options, {}, call),
                  crout::testing::IsOk());
    });
    ASSERT_THAT(reported, ::testing::SizeIs(::testing::Ge(1u)));
    EXPECT_GT(reported.front(), 0);
    EXPECT_LT(reported.back(), kLarge);
    EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  }
}

TEST_F(MethodsTest, ASchurComplementReportsTheProgressOfItsLeadingBlock) {
  constexpr int64_t kLarge = 2048;
  constexpr int64_t kLeading = 2000;
  const HostMatrix a = crout::testing::GalleryNamed("diagonally_dominant").make(kLarge);
  SchurOptions options;
  options.leading_order = kLeading;
  options.factor.algorithm = Algorithm::kCmpp;
  int64_t reported = 0;
  CallOptions call;
  call.on_progress = [&](const ProgressUpdate& update) {
    if (!update.job || update.job->columns_done == 0) return;
    EXPECT_EQ(update.job->columns, kLeading);
    reported = update.job->columns_done;
  };
  FactorDescription factor;
  BufferSink s;
  RunAwaitingReports([&] {
    EXPECT_THAT(client_->Schur(MatrixSource::Dense(absl::MakeConstSpan(a), kLarge, kLarge), options,
                               &factor, &s, call),
                crout::testing::IsOk());
  });
  EXPECT_GT(reported, 0);
  EXPECT_LE(reported, kLeading);
}

TEST_F(MethodsTest, GaussJordanOverTheWire) {
  ASSERT_THAT(algorithms_, ::testing::Contains(Algorithm::kGaussJordan));
  DirectSolveOptions options;
  const auto solver = FindDirectSolver(*device_, "gauss_jordan", DType::kFloat64);
  ASSERT_THAT(solver, crout::testing::IsOk());
  options.solver = *solver;
  auto matrix = runner_.Upload(crout::testing::Packed(a_, kOrder, kOrder, DType::kFloat64));
  auto rhs = runner_.Upload(crout::testing::Packed(b_, kOrder, kNrhs, DType::kFloat64));
  ASSERT_TRUE(matrix.ok() && rhs.ok());
  HostMatrix expected(b_.size());
  const auto summary = SolveDirectly(
      runner_.context(), *std::move(matrix),
      {nullptr, DType::kFloat64, Layout::kColumnMajor, kOrder, kOrder}, *std::move(rhs),
      {nullptr, DType::kFloat64, Layout::kColumnMajor, kOrder, kNrhs}, options,
      reinterpret_cast<std::byte*>(expected.data()), JobRunner::NeverStop(), runner_.timings());
  ASSERT_THAT(summary, crout::testing::IsOk());

  FactorDescription factor;
  HostMatrix x(b_.size());
  SpanSink sink(absl::MakeSpan(x));
  const auto result =
      client_->FactorAndSolve(Source(a_, kOrder), Source(b_, kNrhs),
                              {.factor = {.algorithm = Algorithm::kGaussJordan}}, &factor, &sink);
  ASSERT_THAT(result, crout::testing::IsOk());
  EXPECT_EQ(x, expected);
  EXPECT_EQ(result->backward_error, summary->backward_error);
}

}  // namespace
}  // namespace crout::e2e::methods_test
