// SPDX-License-Identifier: Apache-2.0

// Tests how SolveSeries solves its steps.
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "kernels/jobs/series/series_step.h"
#include "tests/server/rpc/series/series_fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::series_test {
namespace {

using ::testing::HasSubstr;

TEST_F(RpcSeriesTest, StepsReuseTheFactorWhileItIsAccurate) {
  StartServer();
  const Holdings before = Idle();
  Series series(stub());
  v1::SolveSeriesHeader header = With(v1::SERIES_STRATEGY_REUSE);
  header.mutable_cache()->set_name("flow");
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, header));
  ExpectSolved(answer, a_, b_);
  ASSERT_TRUE(answer.factor);
  EXPECT_EQ(answer.factor->name(), "flow");
  EXPECT_EQ(answer.factor->version(), 1);
  EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_REFACTOR);
  EXPECT_EQ(answer.result.age(), 0);
  const std::string handle = answer.factor->handle();

  std::vector<double> a = a_;
  for (int step = 1; step <= 4; ++step) {
    a = Changed(a, 1e-6, 10 + step);
    ASSERT_TRUE(series.Step(a, b_, &answer));
    ExpectSolved(answer, a, b_);
    EXPECT_FALSE(answer.factor);
    EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_REUSE);
    EXPECT_EQ(answer.result.age(), step);
    EXPECT_GE(answer.result.old_iterations(), 1);
    EXPECT_EQ(answer.result.new_iterations(), 0);
    EXPECT_EQ(answer.result.factor_version(), 1);
  }
  // A step without a matrix uses the matrix of the previous step.
  const std::vector<double> other = RandomMatrix(kN, 1, 6);
  ASSERT_TRUE(series.Step({}, other, &answer));
  ExpectSolved(answer, a, other);

  // Other calls can use the factor of the series. Its other parts are not listed.
  Solved solved;
  EXPECT_TRUE(Solve(handle, other, &solved).ok());
  EXPECT_LE(BackwardError(a_, kN, Op::kNone, solved.x, other, 1), kAccuracy);
  EXPECT_EQ(Listed().size(), 1u);

  EXPECT_TRUE(series.Finish().ok());
  WaitUntil([&] { return Idle().factors == 1; }, "the parts between the steps to go");
  v1::ReleaseFactorRequest release;
  release.set_handle(handle);
  v1::ReleaseFactorResponse released;
  grpc::ClientContext context;
  EXPECT_TRUE(stub().ReleaseFactor(&context, release, &released).ok());
  ExpectHeldSoon(before);
}

TEST_F(RpcSeriesTest, ChangesReplaceWholeMatrices) {
  StartServer();
  const Holdings before = Idle();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  std::vector<double> a = Matrix(kN);
  const std::vector<double> b = RandomMatrix(kN, 1, 6);
  Series series(stub());
  v1::SolveSeriesHeader header;
  header.set_handle(factor.handle());
  v1::SolveSeriesRequest request;
  request.set_rhs_data(Bytes(b));
  for (int step = 0; step < 4; ++step) {
    v1::SolveSeriesHeader& next = *request.mutable_header() = header;
    header.clear_handle();
    *next.mutable_rhs() = Dense(kN, 1);
    if (step % 2 == 0) {
      const std::vector<double> values = {1.5 + step, -0.25};
      const std::vector<int32_t> rows = {0, kN - 1};
      const std::vector<int32_t> cols = {step, 3};
      for (int k = 0; k < 2; ++k) a[rows[k] + cols[k] * kN] = values[k];
      next.mutable_change()->set_entries(2);
      request.set_data(Concatenate(values, rows, cols));
    } else {
      const std::vector<double> u = RandomMatrix(kN, 1, 30 + step);
      const std::vector<double> v = RandomMatrix(kN, 1, 40 + step);
      for (int64_t j = 0; j < kN; ++j) {
        for (int64_t i = 0; i < kN; ++i) a[i + j * kN] += u[i] * v[j];
      }
      next.mutable_change()->set_rank(1);
      request.set_data(Concatenate(u, v));
    }
    ASSERT_TRUE(series.Write(request));
    Answer answer;
    ASSERT_TRUE(series.Receive(&answer));
    ExpectSolved(answer, a, b);
  }
  EXPECT_TRUE(series.Finish().ok());
  WaitUntil([&] { return Idle().factors == before.factors + 1; }, "what was between the steps");
}

// The changes are as large as the matrix, so that the old factor is useless without an update.
TEST_F(RpcSeriesTest, LowRankChangesUpdateTheFactor) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  std::vector<double> a = Matrix(kN);
  const std::vector<double> b = RandomMatrix(kN, 1, 6);
  Series series(stub());
  v1::SolveSeriesHeader header = With(v1::SERIES_STRATEGY_UPDATE);
  header.set_handle(factor.handle());
  v1::SolveSeriesRequest request;
  request.set_rhs_data(Bytes(b));
  const int64_t most = MaxUpdateRank(kN);
  const auto step = [&](int number, Answer* answer) {
    *request.mutable_header() = header;
    header.Clear();
    *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
    request.mutable_header()->mutable_change()->set_rank(1);
    const std::vector<double> u = RandomMatrix(kN, 1, 100 + number);
    const std::vector<double> v = RandomMatrix(kN, 1, 200 + number);
    for (int64_t j = 0; j < kN; ++j) {
      for (int64_t i = 0; i < kN; ++i) a[i + j * kN] += u[i] * v[j];
    }
    request.set_data(Concatenate(u, v));
    ASSERT_TRUE(series.Write(request));
    ASSERT_TRUE(series.Receive(answer));
    ExpectSolved(*answer, a, b);
  };
  Answer answer;
  for (int64_t rank = 1; rank <= most; ++rank) {
    ASSERT_NO_FATAL_FAILURE(step(static_cast<int>(rank), &answer));
    EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_UPDATE);
    EXPECT_EQ(answer.result.update_rank(), rank);
    EXPECT_LE(answer.result.old_iterations(), 4);
    EXPECT_EQ(answer.result.age(), rank);
  }
  const std::string scrape = core().metrics.Scrape();
  EXPECT_EQ(SampleOf(scrape, "crout_series_steps_total{device=\"cuda:0\",outcome=\"updated\"}"),
            most);
  const std::string age = "crout_series_factor_age_steps_";
  EXPECT_EQ(SampleOf(scrape, age + "count{device=\"cuda:0\"}"), most);
  EXPECT_EQ(SampleOf(scrape, age + "sum{device=\"cuda:0\"}"), most * (most + 1) / 2);
  // Beyond the largest rank of an update, the step makes a new factor, which later steps update.
  ASSERT_NO_FATAL_FAILURE(step(most + 1, &answer));
  EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_REFACTOR);
  EXPECT_EQ(answer.result.old_iterations(), 0);
  EXPECT_EQ(answer.result.update_rank(), 0);
  ASSERT_NO_FATAL_FAILURE(step(most + 2, &answer));
  EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_UPDATE);
  EXPECT_EQ(answer.result.update_rank(), 1);

  // When another call has replaced the factor, updates of the previous version are not used.
  ASSERT_TRUE(Replace(factor.handle(), Matrix(kN, 7)).ok());
  ASSERT_NO_FATAL_FAILURE(step(most + 3, &answer));
  EXPECT_EQ(answer.result.update_rank(), 0);
  EXPECT_TRUE(series.Finish().ok());
}

TEST_F(RpcSeriesTest, AMatrixFarFromTheFactorIsFactoredInTheSameStep) {
  StartServer();
  for (const auto strategy :
       {v1::SERIES_STRATEGY_AUTO, v1::SERIES_STRATEGY_REFACTOR, v1::SERIES_STRATEGY_REUSE}) {
    Series series(stub());
    Answer answer;
    ASSERT_TRUE(series.Step(a_, b_, &answer, With(strategy)));
    // The matrix is unrelated to the previous one.
    std::vector<double> far = RandomMatrix(kN, kN, 99);
    far[0] = std::numeric_limits<double>::min();
    ASSERT_TRUE(series.Step(far, b_, &answer));
    ExpectSolved(answer, far, b_);
    if (strategy == v1::SERIES_STRATEGY_REFACTOR) {
      EXPECT_EQ(answer.result.old_iterations(), 0);
      ASSERT_TRUE(answer.factor);
      EXPECT_EQ(answer.factor->version(), 2);
      EXPECT_EQ(answer.result.age(), 0);
      // The factor now belongs to the matrix of the previous step.
      ASSERT_TRUE(series.Step({}, b_, &answer));
      ExpectSolved(answer, far, b_);
    }
    EXPECT_TRUE(series.Finish().ok());
  }
}

TEST_F(RpcSeriesTest, TextsOfMatricesAreStoredAsSparse) {
  FakeDeviceOptions options;
  options.has_sparse_ops = true;
  StartServer(options);
  Series series(stub());
  std::vector<double> a(kN * kN);
  for (int step = 0; step < 3; ++step) {
    std::string text = absl::StrCat("%%MatrixMarket matrix coordinate real general\n", kN, " ", kN,
                                    " ", 2 * kN - 1, "\n");
    for (int64_t i = 0; i < kN; ++i) {
      a[i + i * kN] = 4 + 1e-5 * step * static_cast<double>(i);
      absl::StrAppendFormat(&text, "%d %d %.17g\n", i + 1, i + 1, a[i + i * kN]);
      if (i == 0) continue;
      a[i + (i - 1) * kN] = 1;
      absl::StrAppendFormat(&text, "%d %d 1\n", i + 1, i);
    }
    v1::SolveSeriesRequest request;
    *request.mutable_header()->mutable_matrix() = Text();
    *request.mutable_header()->mutable_rhs() = Dense(kN, 2);
    request.set_data(text);
    request.set_rhs_data(Bytes(b_));
    ASSERT_TRUE(series.Write(request));
    Answer answer;
    ASSERT_TRUE(series.Receive(&answer)) << series.Status().error_message();
    ExpectSolved(answer, a, b_);
    ASSERT_TRUE(series.Step({}, b_, &answer));
    ExpectSolved(answer, a, b_);
  }
  EXPECT_TRUE(series.Finish().ok());
}

TEST_F(RpcSeriesTest, ASingularMatrixIsAnAnswerAndTheNextStepIsSolved) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REFACTOR)));
  std::vector<double> singular = a_;
  for (int64_t i = 0; i < kN; ++i) singular[i] = 0;
  ASSERT_TRUE(series.Step(singular, b_, &answer));
  EXPECT_FALSE(answer.result.solved());
  EXPECT_FALSE(answer.result.accurate());
  EXPECT_TRUE(answer.x.empty());
  ASSERT_TRUE(answer.factor);
  EXPECT_EQ(answer.factor->info(), 1);
  EXPECT_EQ(answer.factor->handle(), "");
  EXPECT_EQ(answer.result.factor_version(), 1);
  const std::vector<double> next = Changed(a_, 1e-6, 4);
  ASSERT_TRUE(series.Step(next, b_, &answer));
  ExpectSolved(answer, next, b_);
  EXPECT_EQ(answer.result.factor_version(), 2);
  EXPECT_TRUE(series.Finish().ok());
}

// The step after a singular matrix can use this matrix like any other.
TEST_F(RpcSeriesTest, ChangesApplyToAPrecedingSingularMatrix) {
  StartServer();
  std::vector<double> singular = a_;
  for (int64_t i = 0; i < kN; ++i) singular[i] = 0;
  std::vector<double> column(a_.begin(), a_.begin() + kN);
  std::vector<int32_t> rows(kN), columns(kN, 0);
  std::iota(rows.begin(), rows.end(), 0);
  v1::SolveSeriesRequest entries;
  entries.mutable_header()->mutable_change()->set_entries(kN);
  entries.set_data(Concatenate(column, rows, columns));
  v1::SolveSeriesRequest low_rank;
  low_rank.mutable_header()->mutable_change()->set_rank(1);
  std::vector<double> first(kN);
  first[0] = 1;
  low_rank.set_data(Concatenate(column, first));
  const Holdings before = Idle();
  int64_t factors = 0;
  for (const bool begins : {true, false}) {
    for (const auto strategy : {v1::SERIES_STRATEGY_AUTO, v1::SERIES_STRATEGY_REFACTOR}) {
      for (v1::SolveSeriesRequest change : {entries, low_rank}) {
        SCOPED_TRACE(absl::StrCat(begins, " ", strategy, " ", change.header().DebugString()));
        *change.mutable_header()->mutable_rhs() = Dense(kN, 2);
        change.set_rhs_data(Bytes(b_));
        Series series(stub());
        Answer answer;
        v1::SolveSeriesHeader header = With(strategy);
        if (!begins) {
          ASSERT_TRUE(series.Step(Matrix(kN), b_, &answer, header));
          header.Clear();
        }
        ASSERT_TRUE(series.Step(singular, b_, &answer, header));
        EXPECT_FALSE(answer.result.solved());
        // Repeats the step, because a use of the stored singular matrix must not consume it.
        for (int step = 0; step < 2; ++step) {
          ASSERT_TRUE(series.Step({}, b_, &answer)) << series.Status().error_message();
          EXPECT_FALSE(answer.result.solved());
          ASSERT_TRUE(answer.factor);
          EXPECT_EQ(answer.factor->info(), 1);
        }
        // A step releases its stream and its memory after its answer.
        WaitUntil(
            [&] {
              DeviceSlot& slot = *core().engine.devices.slots()[0];
              return Held().streams_busy == 0 &&
                     Held().device_reserved == core().engine.cache.EvictableBytes(slot);
            },
            "only evictable memory");
        ASSERT_TRUE(series.Write(change) && series.Receive(&answer))
            << series.Status().error_message();
        ExpectSolved(answer, a_, b_);
        ASSERT_TRUE(answer.factor);
        ASSERT_TRUE(series.Step({}, b_, &answer));
        ExpectSolved(answer, a_, b_);
        EXPECT_TRUE(series.Finish().ok());
        ++factors;
      }
    }
  }
  WaitUntil([&] { return Idle().factors == before.factors + factors; }, "the streams' own parts");
}

TEST_F(RpcSeriesTest, AfterASingularFirstStepTheNextMatrixIsFactored) {
  StartServer();
  std::vector<double> singular = a_;
  for (int64_t i = 0; i < kN; ++i) singular[i] = 0;
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(singular, b_, &answer));
  ASSERT_TRUE(series.Step(a_, b_, &answer));
  ExpectSolved(answer, a_, b_);
  ASSERT_TRUE(answer.factor);
  EXPECT_EQ(answer.factor->version(), 1);
}

TEST_F(RpcSeriesTest, ASingularFactorHasAnOrder) {
  StartServer();
  v1::FactorizeHeader three;
  *three.mutable_matrix() = Dense(3, 3);
  v1::Factor factor;
  ASSERT_TRUE(Factorize(three, Bytes(std::vector<double>(9)), &factor).ok());
  v1::SolveSeriesHeader header;
  header.set_handle(factor.handle());
  Answer answer;
  {
    Series series(stub());
    EXPECT_FALSE(series.Step(a_, b_, &answer, header));
    const grpc::Status status = series.Status();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("has order 3"));
  }
  ASSERT_EQ(Listed().size(), 1u);
  EXPECT_EQ(Listed()[0].n(), 3);
  {
    Series series(stub());
    header.mutable_options()->set_device("cuda:7");
    EXPECT_FALSE(series.Step(a_, b_, &answer, header));
    EXPECT_THAT(series.Status().error_message(), HasSubstr("the series' factor is on cuda:0"));
  }
  // The result is the same if another call has made the factor singular.
  Series series(stub());
  ASSERT_TRUE(series.Step(a_, b_, &answer));
  v1::RefactorizeRequest request;
  request.mutable_header()->set_handle(answer.factor->handle());
  *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
  request.mutable_header()->set_replace_if_singular(true);
  request.set_data(Bytes(std::vector<double>(kN * kN)));
  grpc::ClientContext context;
  const auto stream = stub().Refactorize(&context);
  stream->Write(request);
  stream->WritesDone();
  v1::RefactorizeResponse response;
  while (stream->Read(&response)) {
  }
  ASSERT_TRUE(stream->Finish().ok());
  v1::SolveSeriesRequest other;
  *other.mutable_header()->mutable_matrix() = Dense(3, 3);
  *other.mutable_header()->mutable_rhs() = Dense(3, 1);
  other.set_data(Bytes({1, 0, 0, 0, 1, 0, 0, 0, 1}));
  other.set_rhs_data(Bytes({1, 1, 1}));
  ASSERT_TRUE(series.Write(other));
  EXPECT_FALSE(series.Receive(&answer));
  EXPECT_THAT(series.Status().error_message(), HasSubstr("has order 40"));
}

TEST_F(RpcSeriesTest, ASeriesWithoutItsFactorFactorsTheNextMatrix) {
  StartServer();
  const auto release = [&](const std::string& handle) {
    v1::ReleaseFactorRequest request;
    request.set_handle(handle);
    v1::ReleaseFactorResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub().ReleaseFactor(&context, request, &response).ok());
  };
  Answer answer;
  {
    Series series(stub());
    ASSERT_TRUE(series.Step(a_, b_, &answer));
    release(answer.factor->handle());
    EXPECT_FALSE(series.Step({}, b_, &answer));
    ExpectMatrixGone(series.Status());
  }
  Series series(stub());
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REUSE)));
  const std::string first = answer.factor->handle();
  release(first);
  ASSERT_TRUE(series.Step(a_, b_, &answer)) << series.Status().error_message();
  ExpectSolved(answer, a_, b_);
  ASSERT_TRUE(answer.factor);
  EXPECT_NE(answer.factor->handle(), first);
  // The matrix of the previous step is not the factored one. It survives the release of the factor.
  const std::vector<double> next = Changed(a_, 1e-6, 4);
  ASSERT_TRUE(series.Step(next, b_, &answer));
  EXPECT_FALSE(answer.factor);
  release(Listed().at(0).handle());
  ASSERT_TRUE(series.Step({}, b_, &answer)) << series.Status().error_message();
  ExpectSolved(answer, next, b_);
  EXPECT_TRUE(answer.factor);
}

// In the second step, only the last GMRES iteration reduces the residual. An estimate from its
// first iterations would abandon the step and make a new factor.
TEST_F(RpcSeriesTest, NoStepFallsBackBeforeTheIterationsOfThePreviousStep) {
  FakeDeviceOptions slow;
  slow.slowness = 1e9;  // a new factor is predicted to cost more than any number of iterations
  StartServer(slow);
  std::vector<double> unit(kN * kN);
  for (int64_t i = 0; i < kN; ++i) unit[i + i * kN] = 1;
  v1::FactorizeHeader factorize;
  *factorize.mutable_matrix() = Dense(kN, kN);
  v1::Factor factor;
  ASSERT_TRUE(Factorize(factorize, Bytes(unit), &factor).ok());

  // GMRES needs as many iterations as there are distinct eigenvalues.
  constexpr int kIterations = 8;
  std::vector<double> diagonal(kN * kN);
  for (int64_t i = 0; i < kN; ++i) {
    diagonal[i + i * kN] = 0.5 + static_cast<double>(i % kIterations) / kIterations;
  }
  Series series(stub());
  v1::SolveSeriesHeader header = With(v1::SERIES_STRATEGY_AUTO);
  header.set_handle(factor.handle());
  const std::vector<double> ones(kN, 1.0);
  Answer answer;
  ASSERT_TRUE(series.Step(diagonal, ones, &answer, header));
  ExpectSolved(answer, diagonal, ones);
  EXPECT_FALSE(answer.factor);
  EXPECT_GE(answer.result.old_iterations(), kIterations);

  // The next matrix permutes kCircle rows cyclically, and the residual is in one of them. Each
  // iteration moves the residual to the next row and doubles it. Only the last iteration eliminates
  // it.
  constexpr int kCircle = 6;
  std::vector<double> turned = unit;
  std::vector<double> b = answer.x;
  for (int64_t j = 0; j < kCircle; ++j) {
    const int64_t next = (j + 1) % kCircle;
    const double weight = next == 0 ? 0x1p-5 : 2;
    turned[j + j * kN] = 0;
    turned[next + j * kN] = weight;
    b[next] = weight * answer.x[j];
  }
  b[0] += 0x1p-10;
  ASSERT_TRUE(series.Step(turned, b, &answer));
  ExpectSolved(answer, turned, b);
  EXPECT_FALSE(answer.factor);
  EXPECT_EQ(answer.result.new_iterations(), 0);
  EXPECT_GE(answer.result.old_iterations(), kCircle);
}

}  // namespace
}  // namespace crout::testing::series_test
