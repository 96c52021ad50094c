// SPDX-License-Identifier: Apache-2.0

// Tests sparse factors over RPC: the choice of the method, replies, memory, and calls that do not
// support sparse factors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/sparse/sparse_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::multifrontal_test {
namespace {

using ::testing::HasSubstr;

class RpcMultifrontalTest : public RpcSparseTest {
 protected:
  RpcMultifrontalTest() : RpcSparseTest({v1::ALGORITHM_MULTIFRONTAL}) {}
};

TEST_F(RpcMultifrontalTest, ReportsItsMethodAndSolvesToRoundoff) {
  Start();
  constexpr int64_t kM = 20;
  const Triplets a = Grid(kM);
  v1::FactorizeHeader header = Header(kM * kM, a);
  header.mutable_options()->set_condition(true);
  header.mutable_options()->set_determinant(true);
  const v1::Factor factor = MustFactor(header, a);
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_MULTIFRONTAL);
  EXPECT_EQ(factor.n(), kM * kM);
  EXPECT_EQ(factor.nnz(), std::ssize(a));
  EXPECT_EQ(factor.info(), 0);
  EXPECT_TRUE(factor.has_matrix());
  EXPECT_LT(factor.quality(), 30);
  EXPECT_GT(factor.rcond(), 1e-4);
  EXPECT_EQ(factor.determinant().sign(), 1);
  EXPECT_GT(factor.sparse().lu_entries(), std::ssize(a));
  EXPECT_LT(factor.sparse().lu_entries(), kM * kM * kM * kM / 4);
  EXPECT_GT(factor.sparse().flops(), 0);
  EXPECT_GT(factor.sparse().fronts(), 1);
  EXPECT_GT(factor.sparse().levels(), 1);
  EXPECT_GT(factor.sparse().largest_front(), 1);
  EXPECT_FALSE(factor.sparse().ordering().empty());
  EXPECT_FALSE(factor.sparse().analysis_reused());
  EXPECT_GT(factor.timings().analyze_seconds(), 0);
  EXPECT_EQ(factor.sparse().perturbed_pivots(), 0);
  ExpectSolves(factor.handle(), kM * kM, a);
}

TEST_F(RpcMultifrontalTest, OnePatternIsAnalysedOnce) {
  Start();
  constexpr int64_t kM = 15;
  const Triplets a = Grid(kM), next = Grid(kM, 1);
  const v1::Factor first = MustFactor(Header(kM * kM, a), a);
  const v1::Factor second = MustFactor(Header(kM * kM, next), next);
  EXPECT_FALSE(first.sparse().analysis_reused());
  EXPECT_TRUE(second.sparse().analysis_reused());
  v1::Factor third;
  ASSERT_TRUE(Refactorize(first.handle(), kM * kM, Grid(kM, 2), &third).ok());
  EXPECT_EQ(third.version(), 2);
  EXPECT_TRUE(third.sparse().analysis_reused());
  ExpectSolves(first.handle(), kM * kM, Grid(kM, 2));
  ExpectSolves(second.handle(), kM * kM, next);
}

TEST_F(RpcMultifrontalTest, ACachedAnalysisIsNotInFlight) {
  Start();
  const Triplets grid = Grid(15), star = Star(1e-3);
  MustFactor(Header(15 * 15, grid), grid);
  v1::FactorizeHeader header = Header(kStar, star);
  header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
  const v1::Factor own = MustFactor(header, star);
  EXPECT_GT(own.sparse().postponements(), 0) << "its analysis depends on the values";
  Idle();
  const TenantLoad load = core().engine.tenant_loads.Of("default");
  EXPECT_EQ(load.bytes_in_flight(), 0);
  EXPECT_EQ(load.bytes[1], static_cast<int64_t>(core().engine.devices.host_budget().reserved()));
  EXPECT_GT(load.bytes[1], 0);
}

TEST_F(RpcMultifrontalTest, AnotherMatchingRequiresAnotherAnalysis) {
  Start();
  constexpr int64_t kM = 10;
  const Triplets a = Grid(kM);
  v1::FactorizeHeader header = Header(kM * kM, a);
  for (const v1::Equilibrate mode : {v1::EQUILIBRATE_OFF, v1::EQUILIBRATE_ON}) {
    header.mutable_options()->set_equilibrate(mode);
    EXPECT_FALSE(MustFactor(header, a).sparse().analysis_reused());
    EXPECT_TRUE(MustFactor(header, a).sparse().analysis_reused());
  }
}

TEST_F(RpcMultifrontalTest, AcceptsAPivotThreshold) {
  Start();
  const Triplets a = Star(1e-3);
  const auto with = [&](double threshold, v1::Algorithm algorithm = v1::ALGORITHM_MULTIFRONTAL) {
    v1::FactorizeHeader header = Header(kStar, a);
    header.mutable_options()->set_algorithm(algorithm);
    header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
    header.mutable_options()->set_pivot_threshold(threshold);
    return header;
  };
  const v1::Factor loose = MustFactor(with(1e-6), a);
  const v1::Factor by_default = MustFactor(with(0), a);
  const v1::Factor strict = MustFactor(with(1), a);
  EXPECT_EQ(loose.sparse().postponements(), 0);
  EXPECT_GT(by_default.sparse().postponements(), 0);
  EXPECT_LT(strict.pivot_growth(), by_default.pivot_growth() * 1.001);
  EXPECT_FALSE(by_default.sparse().analysis_reused()) << "by another threshold";
  EXPECT_TRUE(MustFactor(with(1), a).sparse().analysis_reused());
  for (const double threshold : {-0.1, 1.5, std::nan("")}) {
    const grpc::Status status = Factorize(with(threshold), BytesOf(a), nullptr);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("is not in (0, 1]"));
  }
  const grpc::Status dense = Factorize(with(0.1, v1::ALGORITHM_GETRF), BytesOf(a), nullptr);
  EXPECT_EQ(dense.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(dense.error_message(), HasSubstr("'getrf' has no pivot threshold"));
}

TEST_F(RpcMultifrontalTest, ReservesFactorMatrixAndAnalysisUntilTheEnd) {
  Start();
  constexpr int64_t kM = 15;
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kM * kM, a), a);
  const Holdings held = Idle();
  EXPECT_EQ(held.device_reserved, static_cast<size_t>(factor.bytes()));
  EXPECT_GT(held.host_reserved, 0u) << "the analysis";
  const v1::Factor twin = MustFactor(Header(kM * kM, a), a);
  EXPECT_EQ(Idle().host_reserved, held.host_reserved) << "one for both";
  for (const v1::Factor& each : {factor, twin}) {
    grpc::ClientContext context;
    v1::ReleaseFactorRequest request;
    request.set_handle(each.handle());
    v1::ReleaseFactorResponse response;
    ASSERT_TRUE(stub().ReleaseFactor(&context, request, &response).ok());
  }
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcMultifrontalTest, AutoChoosesItIfTheDenseMethodIsSlower) {
  Start(/*max_n=*/8192);
  constexpr int64_t kM = 40;
  const Triplets large = Grid(kM);
  EXPECT_EQ(MustFactor(Header(kM * kM, large, v1::ALGORITHM_AUTO), large).algorithm(),
            v1::ALGORITHM_MULTIFRONTAL);
  const Triplets small = Grid(4);
  EXPECT_NE(MustFactor(Header(16, small, v1::ALGORITHM_AUTO), small).algorithm(),
            v1::ALGORITHM_MULTIFRONTAL);
  // `filled` has two fifths of the entries of order 500; `banded` has one in 500 of order 5000.
  Triplets filled, banded;
  for (int64_t i = 0; i < 500; ++i) {
    for (int64_t j = 0; j < 500; ++j) {
      if (i == j || (7 * i + 11 * j) % 5 < 2) filled.push_back({i, j, i == j ? 600.0 : 1.0});
    }
  }
  EXPECT_NE(MustFactor(Header(500, filled, v1::ALGORITHM_AUTO), filled).algorithm(),
            v1::ALGORITHM_MULTIFRONTAL);
  for (int64_t i = 0; i < 5000; ++i) {
    for (const int64_t step : {0, 1, 2, 70, 71}) {
      if (i + step < 5000) banded.push_back({i, i + step, step == 0 ? 20.0 : 1.0});
      if (step > 0 && i >= step) banded.push_back({i, i - step, -1.0});
    }
  }
  EXPECT_EQ(MustFactor(Header(5000, banded, v1::ALGORITHM_AUTO), banded).algorithm(),
            v1::ALGORITHM_MULTIFRONTAL);
}

TEST_F(RpcMultifrontalTest, MatricesBeyondTheDenseLimitAreAccepted) {
  Start(/*max_n=*/100);
  constexpr int64_t kM = 30;
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kM * kM, a, v1::ALGORITHM_AUTO), a);
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_MULTIFRONTAL);
  ExpectSolves(factor.handle(), kM * kM, a);
}

TEST_F(RpcMultifrontalTest, MatricesBeyondTheDenseLimitAreRefusedToDenseMethods) {
  Start(/*max_n=*/100);
  constexpr int64_t kM = 30;
  const Triplets a = Grid(kM);
  ExpectRefused(Header(kM * kM, a, v1::ALGORITHM_GETRF), BytesOf(a),
                grpc::StatusCode::INVALID_ARGUMENT, "max_n");
}

TEST_F(RpcMultifrontalTest, SolvesTransposedAndManyColumns) {
  Start();
  constexpr int64_t kM = 12, kN = kM * kM, kColumns = 5;
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  std::vector<double> b(kN * kColumns);
  for (size_t i = 0; i < b.size(); ++i) b[i] = std::sin(static_cast<double>(i));
  grpc::ClientContext context;
  const auto stream = stub().Solve(&context);
  v1::SolveRequest request;
  request.mutable_header()->set_handle(factor.handle());
  *request.mutable_header()->mutable_rhs() = Dense(kN, kColumns);
  request.mutable_header()->mutable_options()->set_operation(v1::OPERATION_TRANSPOSE);
  request.mutable_header()->mutable_options()->set_error_bound(true);
  request.mutable_header()->mutable_options()->set_componentwise_error(true);
  request.set_data(Bytes(b));
  stream->Write(request);
  stream->WritesDone();
  std::string data;
  v1::SolveResponse response;
  v1::SolveResult result;
  while (stream->Read(&response)) {
    data += response.data();
    if (response.has_result()) result = response.result();
  }
  const grpc::Status status = stream->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(data.size(), b.size() * sizeof(double));
  EXPECT_GT(result.forward_error_bound(), 0);
  EXPECT_LT(result.forward_error_bound(), 1e-10);
  EXPECT_GT(result.componentwise_error(), 0);
  EXPECT_LT(result.componentwise_error(), 1e-13);
  for (int64_t j = 0; j < kColumns; ++j) {
    std::vector<double> x(kN);
    std::memcpy(x.data(), data.data() + j * kN * sizeof(double), kN * sizeof(double));
    EXPECT_LT(BackwardError(a, true, x, {b.begin() + j * kN, b.begin() + (j + 1) * kN}), 1e-15);
  }
}

// The second row has a different scale. Its pivot is so small compared with its column that it is
// perturbed unless the matrix is equilibrated.
TEST_F(RpcMultifrontalTest, NoErrorBoundForPerturbedPivots) {
  Start();
  const Triplets a = {{0, 0, 1}, {0, 1, 1}, {1, 0, 1e-20}, {1, 1, 2e-20}};
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Sparse(2, a);
  *header.mutable_rhs() = Dense(2, 1);
  v1::FactorizeOptions& options = *header.mutable_options();
  options.set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
  options.set_determinant(true);
  header.mutable_solve()->set_error_bound(true);
  for (const v1::Operation op : {v1::OPERATION_NONE, v1::OPERATION_TRANSPOSE}) {
    SCOPED_TRACE(v1::Operation_Name(op));
    header.mutable_solve()->set_operation(op);
    const std::vector<double> b = {1, 0};
    options.set_equilibrate(v1::EQUILIBRATE_OFF);
    const SolvedAtOnce rough = FactorizeAndSolve(header, BytesOf(a), Bytes(b));
    ASSERT_TRUE(rough.status.ok()) << rough.status.error_message();
    EXPECT_EQ(rough.factor.sparse().perturbed_pivots(), 1);
    EXPECT_LT(rough.result.backward_error(), 1e-15);
    EXPECT_EQ(rough.result.forward_error_bound(), std::numeric_limits<double>::infinity());
    EXPECT_FALSE(rough.factor.has_determinant()) << "of another matrix";
    options.set_equilibrate(v1::EQUILIBRATE_ON);
    const SolvedAtOnce good = FactorizeAndSolve(header, BytesOf(a), Bytes(b));
    ASSERT_TRUE(good.status.ok()) << good.status.error_message();
    EXPECT_EQ(good.factor.sparse().perturbed_pivots(), 0);
    EXPECT_LT(good.result.forward_error_bound(), 1e-14);
    EXPECT_NEAR(good.factor.determinant().log_abs(), std::log(1e-20), 1e-13);
  }
}

// The perturbed pivots are larger than every entry of the matrix.
TEST_F(RpcMultifrontalTest, ErrorBoundHoldsForSubnormalMatrices) {
  Start();
  constexpr double kUnit = 0x1p-1040;
  const Triplets a = {{0, 0, 2 * kUnit}, {0, 1, kUnit}, {1, 0, kUnit}, {1, 1, 3 * kUnit}};
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Sparse(2, a);
  *header.mutable_rhs() = Dense(2, 1);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
  header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
  header.mutable_solve()->set_error_bound(true);
  for (const v1::Operation op : {v1::OPERATION_NONE, v1::OPERATION_TRANSPOSE}) {
    SCOPED_TRACE(v1::Operation_Name(op));
    header.mutable_solve()->set_operation(op);
    const std::vector<double> b = {3 * kUnit, 4 * kUnit};  // the solution is all ones
    const SolvedAtOnce solved = FactorizeAndSolve(header, BytesOf(a), Bytes(b));
    ASSERT_TRUE(solved.status.ok()) << solved.status.error_message();
    EXPECT_GT(solved.factor.sparse().perturbed_pivots(), 0);
    double x[2];
    ASSERT_EQ(solved.data.size(), sizeof(x));
    std::memcpy(x, solved.data.data(), sizeof(x));
    const double error =
        std::max(std::abs(x[0] - 1), std::abs(x[1] - 1)) / std::max(std::abs(x[0]), std::abs(x[1]));
    EXPECT_LE(error, solved.result.forward_error_bound());
  }
}

TEST_F(RpcMultifrontalTest, SolvesAfterEvictionToHostMemory) {
  Start();
  constexpr int64_t kM = 15;
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kM * kM, a), a);
  Idle();
  DeviceSlot& slot = *core().engine.devices.slots()[0];
  {
    ASSERT_OK_AND_ASSIGN(const Reservation all,
                         core().engine.cache.ReserveOnDevice(slot, slot.budget->limit()));
    EXPECT_EQ(Held().device_bytes, 0u);
  }
  ExpectSolves(factor.handle(), kM * kM, a);
}

TEST_F(RpcMultifrontalTest, ReportsTheRowWithoutAMatching) {
  Start();
  // Rows 3 to 5 have entries only in two columns, so one of them cannot be matched.
  Triplets a = {{10, 5, 1}};
  for (int64_t i = 0; i < 20; ++i) {
    const bool shares = i >= 3 && i <= 5;
    a.push_back({i, shares ? 3 : i, 1});
    a.push_back({i, shares ? 4 : (i + 1) % 20, 0.5});
  }
  v1::FactorizeHeader header = Header(20, a);
  header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_ON);
  const v1::Factor factor = MustFactor(header, a);
  EXPECT_GT(factor.info(), 0);
  EXPECT_EQ(factor.singular_reason(), v1::SINGULAR_REASON_STRUCTURE);
  EXPECT_GE(factor.empty_index(), 4);  // one of rows 4 to 6, 1-based
  EXPECT_LE(factor.empty_index(), 6);
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_MULTIFRONTAL);
  EXPECT_EQ(factor.norm_one(), 3.5);  // column 4, which three rows share
  EXPECT_EQ(factor.norm_inf(), 2.5);  // row 11
  Solved solved;
  const grpc::Status status = Solve(factor.handle(), std::vector<double>(20, 1.0), &solved);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("stays unmatched"));
}

TEST_F(RpcMultifrontalTest, SingularMatricesAreResults) {
  Start();
  const Triplets a = {{0, 0, 1}, {0, 1, 1}, {1, 0, 1}, {1, 1, 1}, {2, 2, 1}};
  const v1::Factor factor = MustFactor(Header(3, a), a);
  EXPECT_GT(factor.info(), 0);
  EXPECT_EQ(factor.singular_reason(), v1::SINGULAR_REASON_ZERO_PIVOT);
  Solved solved;
  EXPECT_EQ(Solve(factor.handle(), {1, 1, 1}, &solved).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(RpcMultifrontalTest, AcceptsSparseMatricesOnly) {
  Start();
  v1::FactorizeHeader dense;
  *dense.mutable_matrix() = Dense(3, 3);
  dense.mutable_options()->set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
  ExpectRefused(dense, std::string(72, 0), grpc::StatusCode::INVALID_ARGUMENT, "sparse");
  *dense.mutable_matrix() = Text();
  ExpectRefused(dense, "%%MatrixMarket matrix array real general\n1 1\n2\n",
                grpc::StatusCode::INVALID_ARGUMENT, "this one is dense");
  const Triplets a = Grid(3);
  v1::FactorizeHeader odd = Header(9, a);
  odd.mutable_options()->mutable_parameters()->set_tolerance(0.1);
  ExpectRefused(odd, BytesOf(a), grpc::StatusCode::INVALID_ARGUMENT, "parameters");
}

TEST_F(RpcMultifrontalTest, FactorsAndSolvesInOneCall) {
  Start();
  constexpr int64_t kM = 40, kN = kM * kM;
  const Triplets a = Grid(kM);
  std::vector<double> b(kN);
  for (int64_t i = 0; i < kN; ++i) b[i] = std::sin(static_cast<double>(i));
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Sparse(kN, a);
  *header.mutable_rhs() = Dense(kN, 1);
  for (const v1::Algorithm algorithm : {v1::ALGORITHM_AUTO, v1::ALGORITHM_MULTIFRONTAL}) {
    header.mutable_options()->set_algorithm(algorithm);
    const SolvedAtOnce answer = FactorizeAndSolve(header, BytesOf(a), Bytes(b));
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.factor.algorithm(), v1::ALGORITHM_MULTIFRONTAL);
    EXPECT_EQ(answer.result.solver(), v1::SOLVER_MULTIFRONTAL);
    std::vector<double> x(kN);
    ASSERT_EQ(answer.data.size(), kN * sizeof(double));
    std::memcpy(x.data(), answer.data.data(), answer.data.size());
    EXPECT_LT(BackwardError(a, false, x, b), 1e-14);
    ExpectHeldSoon(Holdings());
  }
  // If the solver is for dense factors, `auto` chooses a dense method, and a sparse method chosen
  // by name is refused.
  header.mutable_solve()->set_solver(v1::SOLVER_TRSM);
  EXPECT_EQ(FactorizeAndSolve(header, BytesOf(a), Bytes(b)).status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_AUTO);
  const SolvedAtOnce answer = FactorizeAndSolve(header, BytesOf(a), Bytes(b));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.result.solver(), v1::SOLVER_TRSM);
}

TEST_F(RpcMultifrontalTest, WithoutMemoryForTheFactorNothingStaysReserved) {
  Start(4096, size_t{1} << 20);
  constexpr int64_t kM = 60;
  const Triplets a = Grid(kM);
  ExpectRefused(Header(kM * kM, a), BytesOf(a), grpc::StatusCode::RESOURCE_EXHAUSTED, "");
}

}  // namespace
}  // namespace crout::testing::multifrontal_test
