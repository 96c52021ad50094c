// SPDX-License-Identifier: Apache-2.0

// Tests matrices with an empty row or column. They are reported as singular when their text has
// arrived, without a job and without memory for a factor.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/cache/factor_cache.h"
#include "tests/server/rpc/fixture.h"

namespace crout::testing::singular_test {
namespace {

constexpr char kBanner[] = "%%MatrixMarket matrix coordinate real general\n";

class RpcSingularTest : public RpcTest {
 protected:
  void SetUp() override {
    StartServer();
    // Blocks all factorizations and solves.
    device().factor_gate().Close();
    device().solve_gate().Close();
  }

  grpc::Status FactorizeText(const std::string& text, v1::Factor* factor,
                             v1::Dtype dtype = v1::DTYPE_FLOAT64) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Text(dtype);
    header.mutable_options()->set_determinant(true);
    header.mutable_options()->set_condition(true);
    return Factorize(header, text, factor);
  }

  void ExpectSingular(const v1::Factor& factor, int64_t n, v1::SingularReason reason,
                      int64_t index) {
    EXPECT_EQ(factor.n(), n);
    EXPECT_EQ(factor.info(), n);
    EXPECT_EQ(factor.singular_reason(), reason);
    EXPECT_EQ(factor.empty_index(), index);
    EXPECT_EQ(device().counting_memory().live_bytes(), 0u);
  }
};

TEST_F(RpcSingularTest, AnEmptyMatrixUsesOneCacheEntry) {
  v1::Factor factor;
  ASSERT_TRUE(FactorizeText(absl::StrCat(kBanner, "2000 2000 0\n"), &factor).ok());
  ExpectSingular(factor, 2000, v1::SINGULAR_REASON_EMPTY_ROW, 1);
  EXPECT_EQ(factor.rcond(), 0);
  EXPECT_TRUE(factor.has_determinant());
  EXPECT_EQ(factor.determinant().sign(), 0);
  EXPECT_EQ(factor.determinant().log_abs(), -INFINITY);
  EXPECT_EQ(factor.pivot_growth(), 0);
  EXPECT_EQ(factor.norm_one(), 0);
  EXPECT_FALSE(factor.has_matrix());
  EXPECT_EQ(factor.bytes(), static_cast<int64_t>(FactorCache::kEntryBytes));
  EXPECT_EQ(Idle().device_reserved, FactorCache::kEntryBytes);

  Solved solved;
  const grpc::Status solve = Solve(factor.handle(), std::vector<double>(2000, 1.0), &solved);
  EXPECT_EQ(solve.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(solve.error_message().find("row 1 (1-based) is empty"), std::string::npos)
      << solve.error_message();

  grpc::ClientContext context;
  v1::GetFactorsRequest request;
  request.set_handle(factor.handle());
  const auto stream = stub().GetFactors(&context, request);
  v1::GetFactorsResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);

  grpc::ClientContext describing;
  v1::DescribeFactorRequest describe;
  describe.set_handle(factor.handle());
  v1::DescribeFactorResponse described;
  ASSERT_TRUE(stub().DescribeFactor(&describing, describe, &described).ok());
  EXPECT_EQ(described.factor().singular_reason(), v1::SINGULAR_REASON_EMPTY_ROW);
}

TEST_F(RpcSingularTest, RowsAndColumnsAreDistinguished) {
  v1::Factor factor;
  ASSERT_TRUE(FactorizeText(absl::StrCat(kBanner, "3 3 3\n1 1 1\n2 1 1\n3 3 2\n"), &factor).ok());
  ExpectSingular(factor, 3, v1::SINGULAR_REASON_EMPTY_COLUMN, 2);
  EXPECT_EQ(factor.norm_one(), 2);
  EXPECT_EQ(factor.norm_inf(), 2);
  EXPECT_EQ(factor.nnz(), 3);
  ASSERT_TRUE(FactorizeText(absl::StrCat(kBanner, "3 3 3\n1 1 1\n1 2 1\n3 3 2\n"), &factor).ok());
  ExpectSingular(factor, 3, v1::SINGULAR_REASON_EMPTY_ROW, 2);
}

TEST_F(RpcSingularTest, StoredZerosDoNotCountAsEntries) {
  v1::Factor factor;
  // Entries also count as zeros if their sum is zero, or if they underflow in the stored type.
  for (const char* entry : {"2 2 0\n", "2 2 -0.0\n", "2 2 1\n2 2 -1\n"}) {
    const std::string lines = absl::StrCat("1 1 1\n", entry);
    const auto count = std::count(lines.begin(), lines.end(), '\n');
    ASSERT_TRUE(FactorizeText(absl::StrCat(kBanner, "2 2 ", count, "\n", lines), &factor).ok());
    ExpectSingular(factor, 2, v1::SINGULAR_REASON_EMPTY_ROW, 2);
  }
  ASSERT_TRUE(
      FactorizeText(absl::StrCat(kBanner, "2 2 2\n1 1 1\n2 2 1e-300\n"), &factor, v1::DTYPE_FLOAT32)
          .ok());
  ExpectSingular(factor, 2, v1::SINGULAR_REASON_EMPTY_ROW, 2);
  ASSERT_TRUE(FactorizeText("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n"
                            "1 1 1\n3 3 1\n",
                            &factor)
                  .ok());
  ExpectSingular(factor, 3, v1::SINGULAR_REASON_EMPTY_ROW, 2);
}

TEST_F(RpcSingularTest, RegularMatricesAreFactored) {
  v1::Factor factor;
  device().factor_gate().Open();
  device().solve_gate().Open();  // the condition estimate needs it
  // In a symmetric file, an entry below the diagonal also counts above it.
  ASSERT_TRUE(
      FactorizeText("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 3\n", &factor)
          .ok());
  EXPECT_EQ(factor.info(), 0);
  EXPECT_FALSE(factor.has_singular_reason());
  ASSERT_TRUE(
      FactorizeText(absl::StrCat(kBanner, "2 2 4\n1 1 1\n1 2 1\n2 1 1\n2 2 1\n"), &factor).ok());
  EXPECT_EQ(factor.info(), 2);
  EXPECT_EQ(factor.singular_reason(), v1::SINGULAR_REASON_ZERO_PIVOT);
  EXPECT_FALSE(factor.has_empty_index());
  const grpc::Status overflow =
      FactorizeText(absl::StrCat(kBanner, "3 3 2\n1 1 1e200\n2 2 1\n"), &factor, v1::DTYPE_FLOAT32);
  EXPECT_EQ(overflow.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "the value comes first";
}

TEST_F(RpcSingularTest, WithoutPivotingTheMethodReportsAZeroPivot) {
  device().factor_gate().Open();
  v1::FactorizeHeader header;
  *header.mutable_matrix() = Text();
  header.mutable_options()->set_algorithm(v1::ALGORITHM_BLOCK_LU);
  header.mutable_options()->set_determinant(true);
  header.mutable_options()->set_condition(true);
  v1::Factor factor;
  ASSERT_TRUE(Factorize(header, absl::StrCat(kBanner, "2 2 2\n1 2 1\n2 1 1\n"), &factor).ok());
  EXPECT_EQ(factor.info(), 1);
  EXPECT_EQ(factor.singular_reason(), v1::SINGULAR_REASON_ZERO_PIVOT);
  EXPECT_FALSE(factor.has_rcond());
  EXPECT_FALSE(factor.has_determinant());
  Solved solved;
  const grpc::Status solve = Solve(factor.handle(), {1, 1}, &solved);
  EXPECT_EQ(solve.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(solve.error_message().find("block_lu does not pivot: the factor is unusable"),
            std::string::npos)
      << solve.error_message();
}

TEST_F(RpcSingularTest, FactorizeAndSolveReportsSingularity) {
  const std::string text = absl::StrCat(kBanner, "3 3 2\n1 1 1\n2 2 1\n");
  for (const v1::Algorithm algorithm : {v1::ALGORITHM_AUTO, v1::ALGORITHM_GAUSS_JORDAN}) {
    v1::FactorizeAndSolveHeader header;
    *header.mutable_matrix() = Text();
    *header.mutable_rhs() = Dense(3, 1);
    header.mutable_options()->set_algorithm(algorithm);
    const SolvedAtOnce solved = FactorizeAndSolve(header, text, Bytes({1, 2, 3}));
    EXPECT_EQ(solved.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(solved.factor.info(), 3);
    EXPECT_EQ(solved.factor.singular_reason(), v1::SINGULAR_REASON_EMPTY_ROW);
    EXPECT_EQ(solved.factor.empty_index(), 3);
    *header.mutable_rhs() = Dense(4, 1);
    EXPECT_EQ(FactorizeAndSolve(header, text, Bytes({1, 2, 3, 4})).status.error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  ExpectHeldSoon({});
}

TEST_F(RpcSingularTest, SchurComplementChecksTheLeadingBlock) {
  // The matrix is nonsingular, but its leading block of order 2 is singular.
  const std::string text = absl::StrCat(kBanner, "3 3 3\n1 1 1\n2 3 1\n3 2 1\n");
  grpc::ClientContext context;
  auto stream = stub().ComputeSchurComplement(&context);
  v1::ComputeSchurComplementRequest request;
  *request.mutable_header()->mutable_matrix() = Text();
  request.mutable_header()->set_leading_order(2);
  request.set_data(text);
  stream->Write(request);
  stream->WritesDone();
  v1::Factor factor;
  v1::ComputeSchurComplementResponse response;
  while (stream->Read(&response)) {
    if (response.has_factor()) factor = response.factor();
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  ExpectSingular(factor, 2, v1::SINGULAR_REASON_EMPTY_ROW, 2);
  EXPECT_FALSE(factor.handle().empty());
  EXPECT_FALSE(factor.has_nnz());  // entries are counted only for the whole matrix
}

TEST_F(RpcSingularTest, RefactorizeRunsNoJob) {
  device().factor_gate().Open();
  v1::Factor good;
  ASSERT_TRUE(Factorize(3, &good).ok());
  device().factor_gate().Close();
  grpc::ClientContext context;
  auto stream = stub().Refactorize(&context);
  v1::RefactorizeRequest request;
  request.mutable_header()->set_handle(good.handle());
  *request.mutable_header()->mutable_matrix() = Text();
  request.set_data(absl::StrCat(kBanner, "3 3 0\n"));
  stream->Write(request);
  stream->WritesDone();
  v1::Factor factor;
  v1::RefactorizeResponse response;
  while (stream->Read(&response)) {
    if (response.has_factor()) factor = response.factor();
  }
  stream->Finish();
  EXPECT_EQ(factor.info(), 3);
  EXPECT_EQ(factor.singular_reason(), v1::SINGULAR_REASON_EMPTY_ROW);
}

}  // namespace
}  // namespace crout::testing::singular_test
