// SPDX-License-Identifier: Apache-2.0

// Tests the warnings for unreliable factors and Schur complements in replies, metrics and lists.
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::quality_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

class RpcQualityTest : public RpcTest {
 protected:
  void SetUp() override { StartServer(); }

  // Returns a matrix that needs pivoting.
  static std::string NeedsPivoting() {
    std::vector<double> a = Matrix(kOrder);
    a[0] = 1e-12;
    return Bytes(a);
  }

  v1::Factor Factorize(v1::Algorithm algorithm, const std::string& data) {
    grpc::ClientContext context;
    auto stream = stub().Factorize(&context);
    v1::FactorizeRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(kOrder, kOrder);
    request.mutable_header()->mutable_options()->set_algorithm(algorithm);
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    v1::Factor factor;
    v1::FactorizeResponse response;
    while (stream->Read(&response)) {
      if (response.has_factor()) factor = response.factor();
    }
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return factor;
  }

  std::optional<double> Counted(const std::string& algorithm, const std::string& result) {
    return SampleOf(core().metrics.Scrape(), "crout_poor_results_total{algorithm=\"" + algorithm +
                                                 "\",result=\"" + result + "\"}");
  }

  static constexpr int64_t kOrder = 30;
};

TEST_F(RpcQualityTest, AGoodFactorHasAQualityAndNoWarning) {
  const v1::Factor factor = Factorize(v1::ALGORITHM_GETRF, NeedsPivoting());
  EXPECT_GT(factor.quality(), 0);
  EXPECT_LT(factor.quality(), 1);
  EXPECT_THAT(factor.warnings(), IsEmpty());
  EXPECT_EQ(Counted("getrf", "factor"), 0);
}

TEST_F(RpcQualityTest, APoorFactorHasAWarningAndIsCounted) {
  const v1::Factor factor = Factorize(v1::ALGORITHM_CM, NeedsPivoting());
  EXPECT_EQ(factor.info(), 0);
  EXPECT_GT(factor.quality(), 30);
  EXPECT_THAT(factor.warnings(), ElementsAre(v1::WARNING_POOR_FACTOR));
  EXPECT_THAT(Counted("cm", "factor"), Optional(1));
  // Later descriptions of the factor contain the warning, too.
  v1::DescribeFactorRequest request;
  request.set_handle(factor.handle());
  v1::DescribeFactorResponse described;
  grpc::ClientContext context;
  ASSERT_TRUE(stub().DescribeFactor(&context, request, &described).ok());
  EXPECT_EQ(described.factor().quality(), factor.quality());
  EXPECT_THAT(described.factor().warnings(), ElementsAre(v1::WARNING_POOR_FACTOR));
}

TEST_F(RpcQualityTest, FactorizeAndSolveWarnsAndGaussJordanHasNoFactor) {
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Dense(kOrder, kOrder);
  *header.mutable_rhs() = Dense(kOrder, 1);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_CM);
  const std::string b = Bytes(std::vector<double>(kOrder, 1.0));
  const SolvedAtOnce poor = FactorizeAndSolve(header, NeedsPivoting(), b);
  ASSERT_TRUE(poor.status.ok()) << poor.status.error_message();
  EXPECT_THAT(poor.factor.warnings(), ElementsAre(v1::WARNING_POOR_FACTOR));
  EXPECT_THAT(Counted("cm", "factor"), Optional(1));
  header.mutable_options()->set_algorithm(v1::ALGORITHM_GAUSS_JORDAN);
  const SolvedAtOnce direct = FactorizeAndSolve(header, Bytes(Matrix(kOrder)), b);
  ASSERT_TRUE(direct.status.ok()) << direct.status.error_message();
  EXPECT_FALSE(direct.factor.has_quality());
  EXPECT_THAT(direct.factor.warnings(), IsEmpty());
}

TEST_F(RpcQualityTest, SolutionsHaveWarningsByBackwardErrorOrElseByGrowth) {
  constexpr int64_t kN = 60;
  std::vector<double> a(kN * kN);  // partial pivoting doubles the last column in every step
  for (int64_t j = 0; j < kN; ++j) {
    a[j + j * kN] = 1;
    for (int64_t i = j + 1; i < kN; ++i) a[i + j * kN] = -1;
    a[j + (kN - 1) * kN] = 1;
  }
  std::vector<double> b(kN);
  for (int64_t i = 0; i < kN; ++i) b[i] = 1.0 / static_cast<double>(1 + i * 7 % 11);
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Dense(kN, kN);
  *header.mutable_rhs() = Dense(kN, 1);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_GETRF);
  const SolvedAtOnce measured = FactorizeAndSolve(header, Bytes(a), Bytes(b));
  ASSERT_TRUE(measured.status.ok()) << measured.status.error_message();
  EXPECT_GT(measured.result.backward_error(), 1e-3);
  EXPECT_THAT(measured.factor.warnings(), ElementsAre(v1::WARNING_POOR_FACTOR));
  EXPECT_THAT(measured.result.warnings(), ElementsAre(v1::WARNING_NOT_ACCURATE));
  header.mutable_solve()->set_verify(false);
  const SolvedAtOnce unmeasured = FactorizeAndSolve(header, Bytes(a), Bytes(b));
  EXPECT_THAT(unmeasured.result.warnings(), ElementsAre(v1::WARNING_POOR_FACTOR));
  const SolvedAtOnce fine = FactorizeAndSolve(header, Bytes(Matrix(kN)), Bytes(b));
  EXPECT_THAT(fine.result.warnings(), IsEmpty());
}

// A small request can run alone or in a batch. It must get the warning in both cases.
TEST_F(RpcQualityTest, NumericallySingularMatricesHaveAWarning) {
  const std::vector<double> magic = {16, 5, 9, 4, 2, 11, 7, 14, 3, 10, 6, 15, 13, 8, 12, 1};
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Dense(4, 4);
  *header.mutable_rhs() = Dense(4, 1);
  for (const v1::Algorithm algorithm : {v1::ALGORITHM_AUTO, v1::ALGORITHM_GETRF}) {
    header.mutable_options()->set_algorithm(algorithm);
    // b is A times the vector of ones. X is small and has no component in the null space.
    const SolvedAtOnce solved =
        FactorizeAndSolve(header, Bytes(magic), Bytes(std::vector<double>(4, 34.0)));
    ASSERT_TRUE(solved.status.ok()) << solved.status.error_message();
    EXPECT_THAT(solved.factor.warnings(), ElementsAre(v1::WARNING_NEARLY_SINGULAR));
    EXPECT_THAT(solved.result.warnings(), ElementsAre(v1::WARNING_NEARLY_SINGULAR));
  }
}

// If the flags are absent, their value is true.
TEST_F(RpcQualityTest, AHeaderWithoutOptionsKeepsTheMatrixAndVerifies) {
  v1::FactorizeHeader factorize;
  *factorize.mutable_matrix() = Dense(1, 1);
  v1::Factor factor;
  ASSERT_TRUE(RpcTest::Factorize(factorize, Bytes({2}), &factor).ok());
  EXPECT_TRUE(factor.has_matrix());
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), {4}, &solved).ok());
  EXPECT_TRUE(solved.result.has_backward_error());

  v1::FactorizeAndSolveHeader both;
  *both.mutable_matrix() = Dense(1, 1);
  *both.mutable_rhs() = Dense(1, 1);
  EXPECT_TRUE(FactorizeAndSolve(both, Bytes({2}), Bytes({4})).result.has_backward_error());
  both.mutable_solve()->set_verify(false);
  EXPECT_FALSE(FactorizeAndSolve(both, Bytes({2}), Bytes({4})).result.has_backward_error());

  factorize.mutable_options()->set_keep_matrix(false);
  ASSERT_TRUE(RpcTest::Factorize(factorize, Bytes({2}), &factor).ok());
  EXPECT_FALSE(factor.has_matrix());
  ASSERT_TRUE(Solve(factor.handle(), {4}, &solved).ok());
  EXPECT_FALSE(solved.result.has_backward_error());
}

// Measuring the backward error needs the stored matrix, except for a matrix without elements.
TEST_F(RpcQualityTest, ABackwardErrorNeedsTheMatrix) {
  const auto solve = [&](int64_t n, bool drop, const std::string& a, const std::string& b) {
    v1::FactorizeAndSolveHeader header;
    *header.mutable_matrix() = Dense(n, n);
    *header.mutable_rhs() = Dense(n, 1);
    header.mutable_options()->set_keep_matrix(!drop);
    const SolvedAtOnce answer = FactorizeAndSolve(header, a, b);
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    return answer.result;
  };
  EXPECT_TRUE(solve(1, false, Bytes({2}), Bytes({4})).has_backward_error());
  EXPECT_FALSE(solve(1, true, Bytes({2}), Bytes({4})).has_backward_error());
  EXPECT_TRUE(solve(0, true, "", "").has_backward_error());
}

TEST_F(RpcQualityTest, ABoundWithoutTheMatrixIsRefusedBeforeThePayload) {
  grpc::ClientContext context;
  const auto stream = stub().FactorizeAndSolve(&context);
  v1::FactorizeAndSolveRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(2, 2);
  *request.mutable_header()->mutable_rhs() = Dense(2, 1);
  request.mutable_header()->mutable_options()->set_keep_matrix(false);
  request.mutable_header()->mutable_solve()->set_error_bound(true);
  ASSERT_TRUE(stream->Write(request));  // without the payload
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("the matrix, which was not kept"));
}

TEST_F(RpcQualityTest, ASingularMatrixHasNoQuality) {
  const v1::Factor factor =
      Factorize(v1::ALGORITHM_CMPP, Bytes(std::vector<double>(kOrder * kOrder, 0.0)));
  EXPECT_EQ(factor.info(), 1);
  EXPECT_FALSE(factor.has_quality());
  EXPECT_THAT(factor.warnings(), IsEmpty());
}

}  // namespace
}  // namespace crout::testing::quality_test
