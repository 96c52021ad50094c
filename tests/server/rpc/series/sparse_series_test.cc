// SPDX-License-Identifier: Apache-2.0

// Tests SolveSeries with sparse factors: the pattern is analyzed once, and steps after the first
// can send only values.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/series/sparse_stream_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::sparse_series_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kM = 20, kN = kM * kM;

using Answer = StreamAnswer;

Triplets EmptyRow() {
  Triplets a = Grid(kM);
  for (Triplet& entry : a) entry.value *= entry.row == 7 ? 0 : 1;
  return a;
}
// Returns a matrix with two columns that have their only entry in the same row.
Triplets UnmatchedRow() {
  Triplets a = Grid(kM);
  std::erase_if(a, [](const Triplet& entry) { return entry.column <= 1 && entry.row != 1; });
  return a;
}

class RpcSparseSeriesTest : public RpcSparseStreamTest,
                            public ::testing::WithParamInterface<v1::Algorithm> {
 protected:
  RpcSparseSeriesTest() : RpcSparseStreamTest(GetParam()) { b_.assign(kN, 1.0); }

  // Tests structurally singular matrices in the first step and in later ones. If `named`, the
  // method is named; otherwise `auto` chooses it.
  void ExpectSingularAndTheNextStepSolved(bool named) {
    for (const bool begins : {true, false}) {
      SCOPED_TRACE(begins ? "at first" : "later");
      Open(v1::SERIES_STRATEGY_REUSE);
      if (!named) first_.clear_options();
      Answer answer;
      if (!begins) {
        ASSERT_TRUE(Step(Grid(kM), false, &answer)) << Finish().error_message();
        ExpectSolved(answer, Grid(kM));
      }
      for (const auto reason : {v1::SINGULAR_REASON_EMPTY_ROW, v1::SINGULAR_REASON_STRUCTURE}) {
        const bool is_empty = reason == v1::SINGULAR_REASON_EMPTY_ROW;
        ASSERT_TRUE(Step(is_empty ? EmptyRow() : UnmatchedRow(), false, &answer))
            << Finish().error_message();
        EXPECT_FALSE(answer.result.solved());
        EXPECT_FALSE(answer.result.accurate());
        EXPECT_EQ(answer.result.accuracy(), kM * 0x1p-53);
        EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_REFACTOR);
        EXPECT_TRUE(answer.x.empty());
        ASSERT_TRUE(answer.factor);
        EXPECT_EQ(answer.factor->singular_reason(), reason);
        EXPECT_EQ(answer.factor->handle(), "");
      }
      ASSERT_TRUE(Step(Grid(kM, 1), false, &answer)) << Finish().error_message();
      ExpectSolved(answer, Grid(kM, 1));
      EXPECT_EQ(answer.factor.has_value(), begins);
      EXPECT_EQ(answer.result.old_iterations() > 0, !begins);
      ASSERT_TRUE(Step(Grid(kM, 2), true, &answer)) << Finish().error_message();
      ExpectSolved(answer, Grid(kM, 2));
      EXPECT_TRUE(Finish().ok());
    }
  }
};

TEST_P(RpcSparseSeriesTest, EveryNewFactorUsesTheFirstAnalysis) {
  Start();
  Open(v1::SERIES_STRATEGY_REFACTOR);
  for (int step = 0; step < 5; ++step) {
    const Triplets a = Grid(kM, step);
    Answer answer;
    // Some steps send the full matrix, as a client may that does not compare patterns.
    ASSERT_TRUE(Step(a, step % 3 != 0, &answer)) << Finish().error_message();
    ExpectSolved(answer, a);
    ASSERT_TRUE(answer.factor);
    EXPECT_EQ(answer.factor->algorithm(), GetParam());
    EXPECT_EQ(answer.factor->version(), step + 1);
    EXPECT_EQ(answer.factor->sparse().analysis_reused(), step > 0);
    EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_REFACTOR);
  }
  EXPECT_TRUE(Finish().ok());
}

TEST_P(RpcSparseSeriesTest, TheReuseStrategyKeepsTheOldFactor) {
  Start();
  Open(v1::SERIES_STRATEGY_REUSE);
  for (int step = 0; step < 4; ++step) {
    const Triplets a = Grid(kM, step);
    Answer answer;
    ASSERT_TRUE(Step(a, step > 0, &answer)) << Finish().error_message();
    ExpectSolved(answer, a);
    EXPECT_EQ(answer.factor.has_value(), step == 0);
    EXPECT_EQ(answer.result.strategy(),
              step == 0 ? v1::SERIES_STRATEGY_REFACTOR : v1::SERIES_STRATEGY_REUSE);
    EXPECT_EQ(answer.result.old_iterations() > 0, step > 0);
  }
  EXPECT_TRUE(Finish().ok());
}

TEST_P(RpcSparseSeriesTest, AStepStartsAtTheGivenX0) {
  Start();
  const auto second = [&](const std::vector<double>& x0, bool values_alone) {
    Open(v1::SERIES_STRATEGY_REUSE);
    Answer answer;
    EXPECT_TRUE(Step(Grid(kM), false, &answer)) << Finish().error_message();
    x0_ = x0;
    EXPECT_TRUE(Step(Grid(kM, 1), values_alone, &answer)) << Finish().error_message();
    ExpectSolved(answer, Grid(kM, 1));
    EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_REUSE);
    EXPECT_TRUE(Finish().ok());
    return answer;
  };
  for (const bool values_alone : {false, true}) {
    const Answer cold = second(std::vector<double>(kN), values_alone);
    EXPECT_GT(cold.result.old_iterations(), 0);
    const Answer solved = second(cold.x, values_alone);
    EXPECT_EQ(solved.result.old_iterations(), 0);
    EXPECT_EQ(solved.x, cold.x);
  }
}

// A series that starts from a cached sparse factor reuses its analysis, and stores new factors
// under its handle.
TEST_P(RpcSparseSeriesTest, BeginsWithASparseFactorAndReplacesIt) {
  Start();
  const Triplets a = Grid(kM), next = Grid(kM, 3);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  Open(v1::SERIES_STRATEGY_REFACTOR, factor.handle());
  Answer answer;
  ASSERT_TRUE(Step(next, /*values_alone=*/false, &answer)) << Finish().error_message();
  ExpectSolved(answer, next);
  ASSERT_TRUE(answer.factor);
  EXPECT_EQ(answer.factor->handle(), factor.handle());
  EXPECT_EQ(answer.factor->version(), 2);
  EXPECT_TRUE(answer.factor->sparse().analysis_reused());
  EXPECT_TRUE(Finish().ok());
  ExpectSolves(factor.handle(), kN, next);
}

TEST_P(RpcSparseSeriesTest, LeavesOnlyItsFactor) {
  Start();
  Open(v1::SERIES_STRATEGY_REFACTOR);
  Answer answer;
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(Step(Grid(kM, step), step > 0, &answer));
  EXPECT_TRUE(Finish().ok());
  EXPECT_EQ(Idle().device_reserved, static_cast<size_t>(answer.factor->bytes()));
  grpc::ClientContext context;
  v1::ReleaseFactorRequest request;
  request.set_handle(answer.factor->handle());
  v1::ReleaseFactorResponse response;
  ASSERT_TRUE(stub().ReleaseFactor(&context, request, &response).ok());
  ExpectHeldSoon(Holdings());
}

TEST_P(RpcSparseSeriesTest, BeyondTheDenseLimit) {
  Start(/*max_n=*/100);
  Open(v1::SERIES_STRATEGY_AUTO);
  for (int step = 0; step < 4; ++step) {
    Answer answer;
    ASSERT_TRUE(Step(Grid(kM, step), step > 0, &answer)) << Finish().error_message();
    ExpectSolved(answer, Grid(kM, step));
  }
  EXPECT_TRUE(Finish().ok());
}

TEST_P(RpcSparseSeriesTest, ASingularStructureIsAnAnswerAndTheNextStepIsSolved) {
  Start();
  ExpectSingularAndTheNextStepSolved(/*named=*/true);
}

// For this order no dense method is available that could detect the singularity.
TEST_P(RpcSparseSeriesTest, ASingularStructureBeyondTheDenseLimitIsAnAnswer) {
  Start(/*max_n=*/100);
  ExpectSingularAndTheNextStepSolved(/*named=*/false);
}

TEST_P(RpcSparseSeriesTest, ASingularStructureIsNotCached) {
  Start();
  for (const bool values_alone : {true, false}) {
    Open(v1::SERIES_STRATEGY_REUSE);
    Answer answer;
    ASSERT_TRUE(Step(Grid(kM), false, &answer)) << Finish().error_message();
    ASSERT_TRUE(Step(Grid(kM, 1), false, &answer)) << Finish().error_message();
    ASSERT_TRUE(Step(EmptyRow(), false, &answer)) << Finish().error_message();
    if (values_alone) {
      EXPECT_FALSE(Step(Grid(kM), true, &answer));
    } else {
      EXPECT_FALSE(StepWithoutMatrix(&answer));
    }
    const grpc::Status status = Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_details(), HasSubstr("MATRIX_GONE"));
  }
}

TEST_P(RpcSparseSeriesTest, AnotherNumberOfValuesIsRefused) {
  Start();
  Open(v1::SERIES_STRATEGY_REFACTOR);
  Answer answer;
  ASSERT_TRUE(Step(Grid(kM), false, &answer));
  Triplets fewer = Grid(kM);
  fewer.pop_back();
  EXPECT_FALSE(Step(fewer, true, &answer));
  const grpc::Status status = Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("values"));
}

TEST_P(RpcSparseSeriesTest, WithoutMemoryForTheFactorNothingStaysReserved) {
  Start(4096, size_t{200} << 10);
  Open(v1::SERIES_STRATEGY_REFACTOR);
  Answer answer;
  EXPECT_FALSE(Step(Grid(kM), false, &answer));
  EXPECT_EQ(Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectHeldSoon(Holdings());
}

INSTANTIATE_TEST_SUITE_P(Methods, RpcSparseSeriesTest,
                         ::testing::Values(v1::ALGORITHM_MULTIFRONTAL, v1::ALGORITHM_KLU),
                         [](const auto& info) { return AlgorithmName(info.param); });

}  // namespace
}  // namespace crout::testing::sparse_series_test
