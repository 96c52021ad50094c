// SPDX-License-Identifier: Apache-2.0

// Tests factors that are prepared for a solver when they enter the cache.
#include <string>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/fakes/preparing_solver.h"

namespace crout::testing::prepared_test {
namespace {

class RpcPreparedTest : public RpcTest {
 protected:
  void SetUp() override { StartServer({.prepares = true}); }

  static v1::FactorizeAndSolveHeader Header(bool cached) {
    v1::FactorizeAndSolveHeader header;
    *header.mutable_matrix() = Dense(2, 2);
    *header.mutable_rhs() = Dense(2, 1);
    header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
    header.mutable_options()->set_algorithm(v1::ALGORITHM_GETRF);
    if (cached) header.mutable_cache();
    return header;
  }
};

TEST_F(RpcPreparedTest, SolvesOfACachedFactorUseThePreparation) {
  const SolvedAtOnce answer = FactorizeAndSolve(Header(true), Bytes({4, 1, 1, 4}), Bytes({1, 1}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  Solved solved;
  ASSERT_TRUE(Solve(answer.factor.handle(), {1, 1}, &solved).ok());
  EXPECT_EQ(solved.result.solver(), v1::SOLVER_CROUT_SOLVE);
  EXPECT_EQ(solved.result.fallback(), v1::SOLVER_FALLBACK_NONE);
}

TEST_F(RpcPreparedTest, AFactorThatTheSolverCannotUseIsNotPrepared) {
  v1::FactorizeAndSolveHeader header = Header(true);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_CMPP);  // the unit diagonal is in U
  const SolvedAtOnce answer = FactorizeAndSolve(header, Bytes({4, 1, 1, 4}), Bytes({1, 1}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_NE(answer.result.solver(), v1::SOLVER_CROUT_SOLVE);
}

TEST_F(RpcPreparedTest, PreparationIsInTheEstimateAndTheReservation) {
  constexpr int64_t kN = 64;
  v1::EstimateFactorizeRequest request;
  request.set_n(kN);
  request.set_matrix_dtype(v1::DTYPE_FLOAT64);
  request.mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
  request.mutable_options()->set_algorithm(v1::ALGORITHM_GETRF);
  v1::EstimateFactorizeResponse estimate;
  grpc::ClientContext context;
  ASSERT_TRUE(stub().EstimateFactorize(&context, request, &estimate).ok());
  const size_t matrix = BlockBytes(kN * kN * sizeof(double));
  const size_t vector = BlockBytes(kN * sizeof(double));
  EXPECT_EQ(estimate.cached_bytes(),  // A and LU, ipiv and the prepared data
            static_cast<int64_t>(FactorCache::Charge(2 * matrix + 2 * vector)));
}

TEST_F(RpcPreparedTest, FactorsOfOneCallAreNotPrepared) {
  const auto a = Bytes({4, 1, 1, 4});
  SolvedAtOnce answer = FactorizeAndSolve(Header(false), a, Bytes({1, 1}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_NE(answer.result.solver(), v1::SOLVER_CROUT_SOLVE);
  v1::FactorizeAndSolveHeader named = Header(false);
  named.mutable_solve()->set_solver(v1::SOLVER_CROUT_SOLVE);
  answer = FactorizeAndSolve(named, a, Bytes({1, 1}));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(answer.status.error_message(), ::testing::HasSubstr("not prepared"));
}

TEST_F(RpcPreparedTest, ACachedFactorIsPreparedFromItsFirstSolveOn) {
  const SolvedAtOnce answer = FactorizeAndSolve(Header(true), Bytes({4, 1, 1, 4}), Bytes({1, 1}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.result.solver(), v1::SOLVER_CROUT_SOLVE);
}

TEST_F(RpcPreparedTest, TheReplyNamesTheFallback) {
  const double small = 0.01 / PreparingSolver::kMeasured;
  const SolvedAtOnce answer =
      FactorizeAndSolve(Header(true), Bytes({1, 0, 0, small}), Bytes({1, 1}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_NE(answer.result.solver(), v1::SOLVER_CROUT_SOLVE);
  EXPECT_NE(answer.result.solver(), v1::SOLVER_UNSPECIFIED);
  EXPECT_EQ(answer.result.fallback(), v1::SOLVER_FALLBACK_CONDITION);
  Solved solved;
  ASSERT_TRUE(Solve(answer.factor.handle(), {1, 1}, &solved).ok());
  EXPECT_EQ(solved.result.solver(), answer.result.solver());
}

// The solver returns the last unknown with a relative error of 1e-5.
class RpcInaccurateTest : public RpcPreparedTest {
 protected:
  void SetUp() override { StartServer({.prepares = true, .prepared_error = 1e-5}); }
};

TEST_F(RpcInaccurateTest, AnInaccurateAnswerIsReplacedAndCounted) {
  const SolvedAtOnce answer = FactorizeAndSolve(Header(true), Bytes({4, 1, 1, 4}), Bytes({5, 5}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  Solved solved;
  ASSERT_TRUE(Solve(answer.factor.handle(), {5, 5}, &solved).ok());
  for (const v1::SolveResult& result : {answer.result, solved.result}) {
    EXPECT_NE(result.solver(), v1::SOLVER_CROUT_SOLVE);
    EXPECT_EQ(result.fallback(), v1::SOLVER_FALLBACK_BACKWARD_ERROR);
    EXPECT_LT(result.backward_error(), 1e-15);
  }
  EXPECT_THAT(
      SampleOf(core().metrics.Scrape(), "crout_solver_fallbacks_total{reason=\"backward_error\"}"),
      ::testing::Optional(2));
}

}  // namespace
}  // namespace crout::testing::prepared_test
