// SPDX-License-Identifier: Apache-2.0

// Tests FactorizeAndSolve with methods that leave no factors: replies and errors.
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"

namespace crout::testing::direct_solve_test {
namespace {

using ::testing::HasSubstr;
constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
constexpr auto kPrecondition = grpc::StatusCode::FAILED_PRECONDITION;

class RpcDirectSolveTest : public RpcTest {
 protected:
  static v1::FactorizeAndSolveHeader Header(int64_t n, int64_t nrhs) {
    v1::FactorizeAndSolveHeader header;
    *header.mutable_matrix() = Dense(n, n);
    *header.mutable_rhs() = Dense(n, nrhs);
    header.mutable_options()->set_algorithm(v1::ALGORITHM_GAUSS_JORDAN);
    return header;
  }

  void ExpectRefused(const v1::FactorizeAndSolveHeader& header, grpc::StatusCode code,
                     const std::string& text) {
    const SolvedAtOnce answer = FactorizeAndSolve(header, Bytes({1, 0, 0, 1}), Bytes({1, 1}));
    EXPECT_EQ(answer.status.error_code(), code) << answer.status.error_message();
    EXPECT_THAT(answer.status.error_message(), HasSubstr(text));
    ExpectHeldSoon(Holdings());
  }
};

TEST_F(RpcDirectSolveTest, SolvesAndCachesNothing) {
  StartServer();
  auto header = Header(2, 1);
  // Has no effect, because no factor is kept.
  header.mutable_options()->set_keep_matrix(false);
  const SolvedAtOnce answer = FactorizeAndSolve(header, Bytes({0, 2, 4, 1}), Bytes({8, 4}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.data, Bytes({1, 2}));
  EXPECT_EQ(answer.header.solution().rows(), 2);
  EXPECT_EQ(answer.result.backward_error(), 0);
  EXPECT_EQ(answer.result.solver(), v1::SOLVER_UNSPECIFIED);
  EXPECT_EQ(answer.result.nrhs(), 1);
  EXPECT_EQ(answer.result.device(), "cuda:0");
  const v1::Factor& factor = answer.factor;
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_GAUSS_JORDAN);
  EXPECT_EQ(factor.n(), 2);
  EXPECT_EQ(factor.device(), "cuda:0");
  EXPECT_EQ(factor.factor_dtype(), v1::DTYPE_FLOAT64);
  EXPECT_EQ(factor.matrix_dtype(), v1::DTYPE_FLOAT64);
  EXPECT_EQ(factor.norm_one(), 5);
  EXPECT_EQ(factor.norm_inf(), 4);
  EXPECT_EQ(factor.info(), 0);
  EXPECT_EQ(factor.handle(), "");
  EXPECT_EQ(factor.version(), 0);
  EXPECT_EQ(factor.unit_diagonal(), v1::UNIT_DIAGONAL_UNSPECIFIED);
  EXPECT_EQ(factor.pivot_growth(), 0);
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcDirectSolveTest, InvertsInSingleAndWithoutVerification) {
  StartServer();
  auto header = Header(2, 2);
  header.mutable_options()->set_factor_dtype(v1::DTYPE_FLOAT32);
  header.mutable_solve()->set_verify(false);
  const SolvedAtOnce answer = FactorizeAndSolve(header, Bytes({0, 2, 4, 1}), Bytes({1, 0, 0, 1}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.data, Bytes({-0.125, 0.25, 0.5, 0}));
  EXPECT_EQ(answer.factor.factor_dtype(), v1::DTYPE_FLOAT32);
  EXPECT_FALSE(answer.result.has_backward_error());
}

TEST_F(RpcDirectSolveTest, AcceptsTextForMatrixAndRightHandSide) {
  const std::string a =
      "%%MatrixMarket matrix coordinate real general\n2 2 3\n2 1 2\n1 2 4\n2 2 1\n";
  const std::string b = "%%MatrixMarket matrix array real general\n2 1\n8\n4\n";
  StartServer();
  for (const bool text_a : {false, true}) {
    for (const bool text_b : {false, true}) {
      auto header = Header(2, 1);
      if (text_a) header.mutable_matrix()->mutable_matrix_market()->set_dtype(v1::DTYPE_FLOAT64);
      if (text_b) header.mutable_rhs()->mutable_matrix_market()->set_dtype(v1::DTYPE_FLOAT64);
      const SolvedAtOnce answer =
          FactorizeAndSolve(header, text_a ? a : Bytes({0, 2, 4, 1}), text_b ? b : Bytes({8, 4}));
      ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
      EXPECT_EQ(answer.data, Bytes({1, 2}));
      EXPECT_EQ(answer.factor.has_nnz(), text_a);
      ExpectHeldSoon(Holdings());
    }
  }
  auto header = Header(2, 1);
  header.mutable_matrix()->mutable_matrix_market()->set_dtype(v1::DTYPE_FLOAT64);
  *header.mutable_rhs() = Dense(3, 1);
  EXPECT_EQ(FactorizeAndSolve(header, a, Bytes({1, 1, 1})).status.error_code(), kInvalid);
}

TEST_F(RpcDirectSolveTest, ASingularMatrixEndsTheCallAfterItsDescription) {
  StartServer();
  const SolvedAtOnce answer = FactorizeAndSolve(Header(2, 1), Bytes({1, 1, 1, 1}), Bytes({1, 1}));
  EXPECT_EQ(answer.status.error_code(), kPrecondition);
  EXPECT_THAT(answer.status.error_details(), HasSubstr("SINGULAR"));
  EXPECT_THAT(
      answer.status.error_message(),
      HasSubstr("gauss_jordan found no pivot in column 2 (1-based): the matrix is singular, "
                "or its elements grew too much"));
  EXPECT_EQ(answer.factor.info(), 2);
  EXPECT_EQ(answer.data, "");
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcDirectSolveTest, RefusesWhatNeedsFactors) {
  using Header = v1::FactorizeAndSolveHeader;
  const std::pair<std::string, std::function<void(Header*)>> asks[] = {
      {"header.cache", [](Header* h) { h->mutable_cache(); }},
      {"header.options.equilibrate",
       [](Header* h) { h->mutable_options()->set_equilibrate(v1::EQUILIBRATE_ON); }},
      {"header.options.condition", [](Header* h) { h->mutable_options()->set_condition(true); }},
      {"header.options.determinant",
       [](Header* h) { h->mutable_options()->set_determinant(true); }},
      {"header.solve.operation",
       [](Header* h) { h->mutable_solve()->set_operation(v1::OPERATION_TRANSPOSE); }},
      {"header.solve.solver", [](Header* h) { h->mutable_solve()->set_solver(v1::SOLVER_TRSM); }},
      {"header.solve.componentwise_error",
       [](Header* h) { h->mutable_solve()->set_componentwise_error(true); }},
      {"header.solve.refine_componentwise",
       [](Header* h) { h->mutable_solve()->set_refine_componentwise(true); }},
      {"header.solve.error_bound", [](Header* h) { h->mutable_solve()->set_error_bound(true); }},
      {"header.solve.max_refinement_steps",
       [](Header* h) { h->mutable_solve()->set_max_refinement_steps(1); }},
  };
  StartServer();
  for (const auto& [field, ask] : asks) {
    auto header = RpcDirectSolveTest::Header(2, 1);
    ask(&header);
    ExpectRefused(header, kInvalid, field + ": requires factors");
  }
}

TEST_F(RpcDirectSolveTest, RefusesShapesAndNumbersAsEverywhere) {
  StartServer();
  auto header = Header(2, 1);
  header.mutable_rhs()->mutable_dense()->set_rows(3);
  ExpectRefused(header, kInvalid, "header.rhs");
  header = Header(2, 1);
  header.mutable_matrix()->mutable_dense()->set_cols(1);
  ExpectRefused(header, kInvalid, "header.matrix");
  const SolvedAtOnce answer = FactorizeAndSolve(Header(2, 1), Bytes({1, 0, 0, 1}), Bytes({1, NAN}));
  EXPECT_EQ(answer.status.error_code(), kInvalid);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("row 1, column 0"));
}

TEST_F(RpcDirectSolveTest, ARequestForFactorsIsRefused) {
  StartServer();
  v1::FactorizeOptions options;
  options.set_algorithm(v1::ALGORITHM_GAUSS_JORDAN);
  grpc::ClientContext context;
  auto stream = stub().Factorize(&context);
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(1, 1);
  *request.mutable_header()->mutable_options() = options;
  stream->Write(request);
  v1::FactorizeResponse response;
  while (stream->Read(&response)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), kPrecondition);
  EXPECT_THAT(status.error_message(), HasSubstr("use FactorizeAndSolve"));

  grpc::ClientContext estimate_context;
  v1::EstimateFactorizeRequest estimate;
  estimate.set_n(3);
  *estimate.mutable_options() = options;
  v1::EstimateFactorizeResponse estimated;
  EXPECT_EQ(stub().EstimateFactorize(&estimate_context, estimate, &estimated).error_code(),
            kPrecondition);

  grpc::ClientContext info_context;
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(stub().GetServerInfo(&info_context, {}, &info).ok());
  EXPECT_THAT(info.devices(0).algorithms(), ::testing::Contains(v1::ALGORITHM_GAUSS_JORDAN));
}

}  // namespace
}  // namespace crout::testing::direct_solve_test
