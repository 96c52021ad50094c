// SPDX-License-Identifier: Apache-2.0

// Tests crout::Series against a real daemon: solutions are accurate, and an interrupted stream
// leaves a factor with which the series can be resumed.
#include "crout/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "crout/status.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/raw_calls.h"
#include "tests/server/scrape.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::series_test {
namespace {

constexpr int64_t kOrder = 30;

class SeriesTest : public ::testing::Test {
 protected:
  // Returns a diagonally dominant matrix. Its distance from the matrix of step 0 grows with each
  // step.
  static std::vector<double> MatrixOf(int step) {
    std::vector<double> a(kOrder * kOrder);
    for (int64_t i = 0; i < kOrder; ++i) {
      for (int64_t j = 0; j < kOrder; ++j) {
        const auto phase = static_cast<double>(3 * i + 7 * j);
        a[static_cast<size_t>(i + j * kOrder)] =
            std::sin(phase) + 1e-6 * step * std::cos(phase) + (i == j ? 2.0 * kOrder : 0);
      }
    }
    return a;
  }

  absl::StatusOr<SeriesStep> Step(Series& series, const std::vector<double>& a) {
    SpanSink x(absl::MakeSpan(x_));
    return series.Step(MatrixSource::Dense(absl::MakeConstSpan(a), kOrder, kOrder), rhs_, &x);
  }
  absl::StatusOr<SeriesStep> StepWithoutMatrix(Series& series) {
    SpanSink x(absl::MakeSpan(x_));
    return series.Step(rhs_, &x);
  }

  // Returns the largest component of the residual of x_, divided by the sum of the moduli of its
  // terms.
  double Error(const std::vector<double>& a) const {
    double worst = 0;
    for (int64_t i = 0; i < kOrder; ++i) {
      double residual = b_[static_cast<size_t>(i)];
      double scale = std::abs(residual);
      for (int64_t j = 0; j < kOrder; ++j) {
        const double term = a[static_cast<size_t>(i + j * kOrder)] * x_[static_cast<size_t>(j)];
        residual -= term;
        scale += std::abs(term);
      }
      worst = std::max(worst, std::abs(residual) / scale);
    }
    return worst;
  }

  static SeriesOptions Reusing() { return {.strategy = SeriesStrategy::kReuse}; }

  const std::vector<double> b_ = std::vector<double>(kOrder, 1);
  const MatrixSource rhs_ = MatrixSource::Dense(absl::MakeConstSpan(b_), kOrder, 1);
  std::vector<double> x_ = std::vector<double>(kOrder);
  Daemon daemon_{{}, "croutd_test"};
  std::shared_ptr<Client> client_ = daemon_.NewClient();
};

TEST_F(SeriesTest, StepsReuseTheExistingFactor) {
  Series series(client_, Reusing());
  for (int step = 0; step < 5; ++step) {
    const std::vector<double> a = MatrixOf(step);
    ASSERT_OK_AND_ASSIGN(const SeriesStep answer, Step(series, a));
    EXPECT_TRUE(answer.result.accurate);
    EXPECT_EQ(answer.result.age, step);
    EXPECT_EQ(answer.made.has_value(), step == 0);
    EXPECT_EQ(answer.result.strategy,
              step == 0 ? SeriesStrategy::kRefactor : SeriesStrategy::kReuse);
    EXPECT_LT(Error(a), 1e-13);
  }
  std::fill(x_.begin(), x_.end(), 0);
  ASSERT_OK_AND_ASSIGN(const SeriesStep alone, StepWithoutMatrix(series));
  EXPECT_EQ(alone.result.age, 5);
  EXPECT_LT(Error(MatrixOf(4)), 1e-13);
  EXPECT_OK(series.Close());
}

TEST_F(SeriesTest, ValuesReplaceWholeTexts) {
  Series series(client_, Reusing());
  // The text lists the lower triangle by columns, with the first entry split over two lines.
  std::string text = absl::StrCat("%%MatrixMarket matrix coordinate real symmetric\n", kOrder, " ",
                                  kOrder, " ", kOrder * (kOrder + 1) / 2 + 1, "\n1 1 1\n");
  std::vector<double> a(kOrder * kOrder);
  std::vector<double> values = {0.25};
  for (int64_t j = 0; j < kOrder; ++j) {
    for (int64_t i = j; i < kOrder; ++i) {
      absl::StrAppend(&text, i + 1, " ", j + 1, i == j ? " 60\n" : " 1\n");
      values.push_back(i == j ? 60.5 : 1 + 1e-3 * static_cast<double>(i));
      a[i + j * kOrder] = a[j + i * kOrder] = values.back();
    }
  }
  a[0] += 0.25;
  SpanSink x(absl::MakeSpan(x_));
  ASSERT_OK_AND_ASSIGN(const SeriesStep first,
                       series.Step(MatrixSource::MatrixMarket(text), rhs_, &x));
  const auto step = [&] {
    return series.Step(MatrixChange::Values<double>(values, first.result.entry_digest), rhs_, &x);
  };
  ASSERT_OK(step().status());
  EXPECT_LT(Error(a), 1e-13);
  values.pop_back();
  EXPECT_THAT(step(), testing::FailsWith(absl::StatusCode::kInvalidArgument, "values"));
  // The failed step ended the stream, and so removed the stored text.
  EXPECT_EQ(Reason(step().status()), "MATRIX_GONE");
  EXPECT_OK(series.Close());
}

TEST_F(SeriesTest, ValuesOfOtherEntriesAreRefused) {
  Series series(client_, Reusing());
  std::vector<double> values(2 * kOrder - 1, 1);
  std::fill_n(values.begin(), kOrder, 60);
  // The matrix has a diagonal and a subdiagonal. Its transpose has a superdiagonal instead.
  std::vector<int32_t> rows, cols;
  for (int32_t i = 0; i < kOrder; ++i) {
    rows.push_back(i);
    cols.push_back(i);
  }
  for (int32_t i = 0; i + 1 < kOrder; ++i) {
    rows.push_back(i + 1);
    cols.push_back(i);
  }
  const auto lower_matrix =
      MatrixSource::Coordinates<double, int32_t>(values, rows, cols, kOrder, kOrder);
  const auto upper_matrix =
      MatrixSource::Coordinates<double, int32_t>(values, cols, rows, kOrder, kOrder);
  SpanSink x(absl::MakeSpan(x_));
  ASSERT_OK_AND_ASSIGN(const SeriesStep lower, series.Step(lower_matrix, rhs_, &x));
  ASSERT_OK_AND_ASSIGN(const SeriesStep upper, series.Step(upper_matrix, rhs_, &x));
  const auto step = [&](const SeriesStep& of) {
    return series.Step(MatrixChange::Values<double>(values, of.result.entry_digest), rhs_, &x);
  };
  ASSERT_OK(step(upper).status());
  const auto refused = step(lower);
  EXPECT_THAT(refused, testing::FailsWith(absl::StatusCode::kFailedPrecondition, "positions"));
  EXPECT_EQ(Reason(refused.status()), "PATTERN_MISMATCH");
  EXPECT_OK(series.Close());
}

TEST_F(SeriesTest, ChangesReplaceWholeMatrices) {
  Series series(client_, Reusing());
  std::vector<double> a = MatrixOf(0);
  ASSERT_OK(Step(series, a).status());
  SpanSink x(absl::MakeSpan(x_));
  const std::vector<int32_t> rows = {0, kOrder - 1};
  const std::vector<int32_t> cols = {4, kOrder - 1};
  const std::vector<double> values = {0.5, 3.0 * kOrder};
  for (size_t k = 0; k < rows.size(); ++k) a[rows[k] + cols[k] * kOrder] = values[k];
  ASSERT_OK(series.Step(MatrixChange::Entries<double>(rows, cols, values), rhs_, &x).status());
  EXPECT_LT(Error(a), 1e-13);

  const std::vector<double> u = MatrixOf(1);  // two of its kOrder columns are used
  const auto two = absl::MakeConstSpan(u).subspan(0, 2 * kOrder);
  for (int64_t j = 0; j < kOrder; ++j) {
    for (int64_t i = 0; i < kOrder; ++i) {
      for (int64_t k = 0; k < 2; ++k) a[i + j * kOrder] += two[i + k * kOrder] * two[2 * j + k];
    }
  }
  ASSERT_OK(series.Step(MatrixChange::LowRank(two, two, kOrder, 2), rhs_, &x).status());
  EXPECT_LT(Error(a), 1e-13);

  EXPECT_THAT(series.Step(MatrixChange::LowRank(two, two, kOrder, 3), rhs_, &x),
              testing::FailsWith(absl::StatusCode::kInvalidArgument, "30 x 3"));
  EXPECT_THAT(series.Step(MatrixChange::Entries<double>(rows, {}, values), rhs_, &x),
              testing::FailsWith(absl::StatusCode::kInvalidArgument, "2 values"));
  // The client has sent none of these changes.
  ASSERT_OK(StepWithoutMatrix(series).status());
  EXPECT_LT(Error(a), 1e-13);
}

TEST_F(SeriesTest, ASeriesResumesByHandleAfterABrokenStream) {
  Cancellation cancellation;
  CallOptions call;
  call.cancellation = &cancellation;
  Series cut(client_, Reusing(), call);
  cut.KeepFactor();
  ASSERT_OK(Step(cut, MatrixOf(0)).status());
  const std::string handle = cut.factor().handle;
  daemon_.failpoints().Hold("series.step");
  std::thread canceller([&] {
    daemon_.failpoints().AwaitReached("series.step", 2);
    cancellation.Cancel();
  });
  EXPECT_EQ(Step(cut, MatrixOf(1)).status().code(), absl::StatusCode::kCancelled);
  canceller.join();
  daemon_.failpoints().Release("series.step");
  EXPECT_OK(cut.Close());

  SeriesOptions options = Reusing();
  options.handle = handle;
  Series resumed(daemon_.NewClient(), options);
  const std::vector<double> a = MatrixOf(2);
  ASSERT_OK_AND_ASSIGN(const SeriesStep step, Step(resumed, a));
  EXPECT_EQ(step.result.strategy, SeriesStrategy::kReuse);
  EXPECT_EQ(step.result.factor_version, 1);
  EXPECT_LT(Error(a), 1e-13);
  EXPECT_OK(resumed.Close());
  EXPECT_OK(client_->Release(handle));
}

TEST_F(SeriesTest, ARefusedStepKeepsTheFactorAndTheSeriesContinues) {
  Series series(client_, Reusing());
  ASSERT_OK(Step(series, MatrixOf(0)).status());
  ASSERT_OK(Step(series, MatrixOf(1)).status());
  std::vector<double> bad = MatrixOf(2);
  bad[5] = std::nan("");
  EXPECT_EQ(Step(series, bad).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Reason(StepWithoutMatrix(series).status()), "MATRIX_GONE");
  const std::vector<double> a = MatrixOf(3);
  ASSERT_OK_AND_ASSIGN(const SeriesStep step, Step(series, a));
  EXPECT_FALSE(step.made.has_value());
  EXPECT_EQ(step.result.factor_version, 1);
  EXPECT_LT(Error(a), 1e-13);
  std::fill(x_.begin(), x_.end(), 0);
  ASSERT_OK(StepWithoutMatrix(series).status());
  EXPECT_LT(Error(a), 1e-13);
}

TEST_F(SeriesTest, ASingularMatrixIsReportedAndCached) {
  Series series(client_, {.strategy = SeriesStrategy::kRefactor});
  ASSERT_OK(Step(series, MatrixOf(0)).status());
  std::vector<double> singular = MatrixOf(1);
  std::fill_n(singular.begin(), kOrder, 0.0);
  ASSERT_OK_AND_ASSIGN(const SeriesStep step, Step(series, singular));
  EXPECT_FALSE(step.result.solved);
  ASSERT_TRUE(step.made.has_value());
  EXPECT_EQ(step.made->info, 1);
  ASSERT_OK_AND_ASSIGN(const SeriesStep again, StepWithoutMatrix(series));
  EXPECT_FALSE(again.result.solved);
  const std::vector<double> a = MatrixOf(2);
  ASSERT_OK(Step(series, a).status());
  EXPECT_LT(Error(a), 1e-13);
}

TEST_F(SeriesTest, NothingIsLeftBehind) {
  const Holdings before = HoldingsOf(*client_);
  {
    Series series(client_);
    ASSERT_OK(Step(series, MatrixOf(0)).status());
    ASSERT_OK(Step(series, MatrixOf(1)).status());
  }
  EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_) == before; }));
}

// The flow control window of the connection is smaller than a reply.
TEST_F(SeriesTest, AClientThatDoesNotReadGetsNoFurtherReplies) {
  constexpr int kSteps = 6;
  constexpr int64_t kColumns = (int64_t{4} << 20) / (kOrder * sizeof(double));
  const size_t rhs_bytes = kOrder * kColumns * sizeof(double);
  const auto stub = daemon_.NewStub();
  grpc::ClientContext context;
  const auto stream = stub->SolveSeries(&context);
  std::thread sender([&] {
    std::vector<double> a(kOrder * kOrder);
    for (int64_t i = 0; i < kOrder; ++i) a[static_cast<size_t>(i * (kOrder + 1))] = 4;
    for (int step = 0; step < kSteps; ++step) {
      v1::SolveSeriesRequest request;
      if (step == 0) *request.mutable_header()->mutable_matrix() = DenseSpecOf(kOrder, kOrder);
      if (step == 0) request.set_data(Bytes(a));
      *request.mutable_header()->mutable_rhs() = DenseSpecOf(kOrder, kColumns);
      const std::string rhs = Bytes(std::vector<double>(kOrder * kColumns, 1 + step));
      for (size_t at = 0; at < rhs.size(); at += size_t{1} << 20, request.Clear()) {
        request.set_rhs_data(rhs.substr(at, size_t{1} << 20));
        if (!stream->Write(request)) return;
      }
    }
    stream->WritesDone();
  });
  const auto begun = [&] { return daemon_.failpoints().reached("series.step"); };
  // Returns whether the second step has arrived and is held: otherwise the call would leave the
  // payload phase.
  const auto held = [&] {
    const auto received = SampleOf(daemon_.ScrapeMetrics(), "crout_received_bytes_total");
    return received.value_or(0) >= 2.0 * static_cast<double>(rhs_bytes) &&
           daemon_.Get("/").find(">payload<") != std::string::npos;
  };
  EXPECT_TRUE(Eventually([&] { return held() || begun() > 1; }));
  EXPECT_EQ(begun(), 1);

  v1::SolveSeriesResponse response;
  for (int step = 0; step < kSteps; ++step) {
    std::string x;
    response.Clear();
    while (!response.has_result() && stream->Read(&response)) x += response.data();
    EXPECT_LE(begun(), step + 2);
    std::vector<double> values(x.size() / sizeof(double));
    std::memcpy(values.data(), x.data(), values.size() * sizeof(double));
    EXPECT_THAT(values, ::testing::SizeIs(kOrder * kColumns));
    EXPECT_THAT(values, ::testing::Each(::testing::DoubleNear((1 + step) / 4.0, 1e-14)));
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  context.TryCancel();  // unblocks the sender if the test has failed
  sender.join();
}

}  // namespace
}  // namespace crout::e2e::series_test
