// SPDX-License-Identifier: Apache-2.0

// Tests Schur complements of selected unknowns of sparse matrices, and estimates of sparse
// factorizations.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/sparse/sparse_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::sparse_schur_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kM = 12, kN = kM * kM;

struct Answer {
  grpc::Status status;
  v1::Factor factor;
  v1::ComplementResult result;
  std::vector<double> s;
};

class RpcSparseSchurTest : public RpcSparseTest {
 protected:
  RpcSparseSchurTest() : RpcSparseTest({v1::ALGORITHM_MULTIFRONTAL, v1::ALGORITHM_KLU}) {}

  static v1::ComputeSchurComplementHeader Keeping(int64_t n, const Triplets& a,
                                                  const std::vector<int32_t>& keep) {
    v1::ComputeSchurComplementHeader header;
    *header.mutable_matrix() = Sparse(n, a);
    header.mutable_keep()->Assign(keep.begin(), keep.end());
    return header;
  }
  Answer Compute(const v1::ComputeSchurComplementHeader& header, const std::string& data) {
    grpc::ClientContext context;
    const auto stream = stub().ComputeSchurComplement(&context);
    v1::ComputeSchurComplementRequest request;
    *request.mutable_header() = header;
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    Answer answer;
    std::string s;
    v1::ComputeSchurComplementResponse response;
    while (stream->Read(&response)) {
      if (response.has_factor()) answer.factor = response.factor();
      if (response.has_result()) answer.result = response.result();
      s += response.data();
    }
    answer.status = stream->Finish();
    answer.s.resize(s.size() / sizeof(double));
    if (!s.empty()) std::memcpy(answer.s.data(), s.data(), s.size());
    return answer;
  }
  void ExpectRefused(const v1::ComputeSchurComplementHeader& header, const std::string& data,
                     grpc::StatusCode code, const std::string& text) {
    const Answer answer = Compute(header, data);
    EXPECT_EQ(answer.status.error_code(), code) << answer.status.error_message();
    EXPECT_THAT(answer.status.error_message(), HasSubstr(text));
    ExpectHeldSoon(Holdings());
  }
};

// Computes S, column-major, by dense elimination of the other unknowns.
std::vector<double> Eliminated(int64_t n, const Triplets& a, const std::vector<int32_t>& keep) {
  std::vector<double> full(n * n);
  for (const Triplet& entry : a) full[entry.row + entry.column * n] += entry.value;
  std::vector<bool> kept(n);
  for (const int32_t k : keep) kept[k] = true;
  for (int64_t k = 0; k < n; ++k) {
    if (kept[k]) continue;
    for (int64_t j = 0; j < n; ++j) {
      if (j == k || full[k + j * n] == 0) continue;
      const double factor = full[k + j * n] / full[k + k * n];
      for (int64_t i = 0; i < n; ++i) {
        if (i != k) full[i + j * n] -= full[i + k * n] * factor;
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      if (i != k) full[i + k * n] = full[k + i * n] = 0;
    }
  }
  std::vector<double> s;
  for (const int32_t j : keep) {
    for (const int32_t i : keep) s.push_back(full[i + j * n]);
  }
  return s;
}

TEST_F(RpcSparseSchurTest, ReturnsTheComplementOfChosenUnknowns) {
  Start();
  const Triplets a = Grid(kM);
  const std::vector<int32_t> keep = {100, 3, 77, 13, 0};
  const Answer answer = Compute(Keeping(kN, a, keep), BytesOf(a));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.factor.algorithm(), v1::ALGORITHM_MULTIFRONTAL);
  EXPECT_EQ(answer.factor.handle(), "");
  EXPECT_EQ(answer.factor.n(), kN - std::ssize(keep));
  EXPECT_EQ(answer.result.solver(), v1::SOLVER_MULTIFRONTAL);
  EXPECT_LT(answer.result.backward_error(), 1e-15);
  EXPECT_GT(answer.result.growth(), 0);
  const std::vector<double> expected = Eliminated(kN, a, keep);
  ASSERT_EQ(answer.s.size(), expected.size());
  for (size_t e = 0; e < expected.size(); ++e) EXPECT_NEAR(answer.s[e], expected[e], 1e-13);
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcSparseSchurTest, AcceptsALeadingOrderIfTheMethodIsNamed) {
  Start(/*max_n=*/50);
  const Triplets a = Grid(kM);
  v1::ComputeSchurComplementHeader header = Keeping(kN, a, {});
  header.set_leading_order(kN - 3);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
  const Answer answer = Compute(header, BytesOf(a));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  const std::vector<double> expected = Eliminated(kN, a, {kN - 3, kN - 2, kN - 1});
  ASSERT_EQ(answer.s.size(), expected.size());
  for (size_t e = 0; e < expected.size(); ++e) EXPECT_NEAR(answer.s[e], expected[e], 1e-13);
}

TEST_F(RpcSparseSchurTest, ReportsASingularBlockOfTheEliminatedUnknowns) {
  Start();
  const Triplets a = {{0, 0, 1}, {0, 1, 1}, {1, 0, 1}, {1, 1, 1}, {2, 2, 1}, {0, 2, 1}};
  const Answer answer = Compute(Keeping(3, a, {2}), BytesOf(a));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("singular"));
  EXPECT_GT(answer.factor.info(), 0);
  ExpectHeldSoon(Holdings());
  // The row of the kept unknown must not supply a pivot.
  Triplets joined = a;
  joined.push_back({2, 0, 1});
  joined.push_back({2, 1, 2});
  const Answer also = Compute(Keeping(3, joined, {2}), BytesOf(joined));
  EXPECT_EQ(also.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  // A nearly singular block has small pivots, which are accepted if the front has no larger ones.
  joined[3].value += 0x1p-40;
  const Answer nearly = Compute(Keeping(3, joined, {2}), BytesOf(joined));
  ASSERT_TRUE(nearly.status.ok()) << nearly.status.error_message();
  EXPECT_EQ(nearly.factor.sparse().perturbed_pivots(), 0);
  EXPECT_GT(nearly.result.growth(), 1e6);
  ASSERT_EQ(nearly.s.size(), 1u);
  EXPECT_DOUBLE_EQ(nearly.s[0], 0x1p40);
}

TEST_F(RpcSparseSchurTest, RefusesInvalidRequests) {
  Start();
  const Triplets a = Grid(kM);
  for (const std::vector<int32_t>& bad :
       {std::vector<int32_t>{-1}, {static_cast<int32_t>(kN)}, {4, 5, 4}}) {
    ExpectRefused(Keeping(kN, a, bad), BytesOf(a), grpc::StatusCode::INVALID_ARGUMENT,
                  "header.keep: unknown");
  }
  const std::vector<int32_t> too_many(kN + 1, 1);
  ExpectRefused(Keeping(kN, a, too_many), BytesOf(a), grpc::StatusCode::INVALID_ARGUMENT,
                "header.keep");
  v1::ComputeSchurComplementHeader header = Keeping(kN, a, {1});
  header.mutable_options()->set_algorithm(v1::ALGORITHM_KLU);
  ExpectRefused(header, BytesOf(a), grpc::StatusCode::UNIMPLEMENTED, "Schur");
  header = Keeping(kN, a, {1});
  header.mutable_cache()->set_name("leading");
  ExpectRefused(header, BytesOf(a), grpc::StatusCode::INVALID_ARGUMENT, "header.cache");
  header = Keeping(kN, a, {1});
  header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_ON);
  ExpectRefused(header, BytesOf(a), grpc::StatusCode::INVALID_ARGUMENT, "kept");
  header.mutable_options()->set_algorithm(v1::ALGORITHM_GETRF);
  *header.mutable_matrix() = Dense(3, 3);
  ExpectRefused(header, std::string(72, 0), grpc::StatusCode::INVALID_ARGUMENT,
                "header.keep: the matrix is dense, and keep is for sparse matrices");
}

TEST_F(RpcSparseSchurTest, RefusesUnusedOptions) {
  Start();
  const Triplets a = Grid(kM);
  v1::ComputeSchurComplementHeader header = Keeping(kN, a, {1});
  header.mutable_options()->set_algorithm(v1::ALGORITHM_GETRF);
  ExpectRefused(header, BytesOf(a), grpc::StatusCode::INVALID_ARGUMENT,
                "header.options.algorithm: getrf factors dense matrices");
  header = Keeping(kN, a, {1});
  header.mutable_options()->set_keep_matrix(false);
  ExpectRefused(header, BytesOf(a), grpc::StatusCode::INVALID_ARGUMENT,
                "header.options.keep_matrix");
  header = Keeping(kN, a, {1});
  header.mutable_options()->mutable_parameters()->set_pivot_rule(v1::PIVOT_RULE_PARTIAL);
  ExpectRefused(header, BytesOf(a), grpc::StatusCode::INVALID_ARGUMENT,
                "header.options.parameters: sparse methods have no parameters");
}

TEST_F(RpcSparseSchurTest, RefusesALeadingOrderWithoutTrailingUnknowns) {
  Start(/*max_n=*/50);
  const Triplets a = Grid(kM);
  v1::ComputeSchurComplementHeader header = Keeping(kN, a, {});
  header.mutable_options()->set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
  for (const int64_t leading : {kN, kN + 1}) {
    header.set_leading_order(leading);
    ExpectRefused(header, BytesOf(a), grpc::StatusCode::INVALID_ARGUMENT,
                  "the order must be less than that");
  }
  // Costs are not predicted for an order whose square overflows.
  header.set_leading_order(std::numeric_limits<int64_t>::max());
  ExpectRefused(header, "", grpc::StatusCode::INVALID_ARGUMENT, "the largest dimension");
}

class RpcSparseEstimateTest : public RpcSparseSchurTest {
 protected:
  grpc::Status Estimate(const v1::EstimateFactorizeRequest& request,
                        v1::EstimateFactorizeResponse* response) {
    grpc::ClientContext context;
    return stub().EstimateFactorize(&context, request, response);
  }
};

TEST_F(RpcSparseEstimateTest, IsExactForAPatternThatWasAnalysed) {
  Start();
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  v1::EstimateFactorizeRequest request;
  request.set_handle(factor.handle());
  request.mutable_options()->set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
  v1::EstimateFactorizeResponse estimate;
  ASSERT_TRUE(Estimate(request, &estimate).ok());
  EXPECT_EQ(estimate.algorithm(), v1::ALGORITHM_MULTIFRONTAL);
  EXPECT_EQ(estimate.cached_bytes(), factor.bytes());
  EXPECT_GT(estimate.peak_bytes(), factor.bytes());
  EXPECT_FALSE(estimate.rough());
  request.set_n(kN);
  EXPECT_EQ(Estimate(request, &estimate).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RpcSparseEstimateTest, IsRoughBefore) {
  Start(/*max_n=*/100);
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  v1::EstimateFactorizeRequest request;
  request.set_n(kN);
  request.set_nnz(std::ssize(a));
  v1::EstimateFactorizeResponse estimate;
  const grpc::Status status = Estimate(request, &estimate);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(estimate.rough());
  EXPECT_LT(estimate.cached_bytes(), 10 * factor.bytes());
  EXPECT_GT(estimate.cached_bytes(), factor.bytes() / 10);
  request.set_nnz(kN * kN + 1);
  EXPECT_THAT(Estimate(request, &estimate).error_message(), HasSubstr("is not in [0, 20736]"));
  request.clear_nnz();
  EXPECT_EQ(Estimate(request, &estimate).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RpcSparseEstimateTest, RefusesMoreEntriesThanASparseMatrixMayHave) {
  Start(/*max_n=*/100'000);
  v1::EstimateFactorizeRequest request;
  request.set_n(100'000);
  request.set_nnz(int64_t{1} << 31);
  v1::EstimateFactorizeResponse estimate;
  ASSERT_TRUE(Estimate(request, &estimate).ok());  // estimated as a dense matrix
  EXPECT_NE(estimate.algorithm(), v1::ALGORITHM_MULTIFRONTAL);
  request.mutable_options()->set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
  const grpc::Status status = Estimate(request, &estimate);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("nnz: 2147483648 is more than"));
}

}  // namespace
}  // namespace crout::testing::sparse_schur_test
