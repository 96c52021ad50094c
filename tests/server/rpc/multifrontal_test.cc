// SPDX-License-Identifier: Apache-2.0

// Sparse matrices with sparse factors over RPC: the choice of method, replies, memory, and calls
// that do not support sparse factors.
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "kernels/util/size_class.h"
#include "tests/server/rpc/sparse_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {
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

TEST_F(RpcMultifrontalTest, AnotherMatchingIsAnotherAnalysis) {
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

TEST_F(RpcMultifrontalTest, TakesAPivotThreshold) {
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
  EXPECT_THAT(dense.error_message(), HasSubstr("'getrf' takes none"));
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

TEST_F(RpcMultifrontalTest, AutoChoosesItWhereTheDenseMethodTakesLonger) {
  Start(/*max_n=*/8192);
  constexpr int64_t kM = 40;
  const Triplets large = Grid(kM);
  EXPECT_EQ(MustFactor(Header(kM * kM, large, v1::ALGORITHM_AUTO), large).algorithm(),
            v1::ALGORITHM_MULTIFRONTAL);
  const Triplets small = Grid(4);
  EXPECT_NE(MustFactor(Header(16, small, v1::ALGORITHM_AUTO), small).algorithm(),
            v1::ALGORITHM_MULTIFRONTAL);
  // Two fifths of the entries of a matrix of order 500, and one in 500 of a matrix of order 5000.
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

TEST_F(RpcMultifrontalTest, MatricesBeyondTheDenseLimitAreTaken) {
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

// The second row has a different scale. Its pivot is so small relative to its column that it is
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

// Perturbed pivots are larger than every entry of the matrix.
TEST_F(RpcMultifrontalTest, NoErrorBoundForSubnormalMatrices) {
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
    const std::vector<double> b = {3 * kUnit, 4 * kUnit};  // The solution is all ones.
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
  DeviceSlot& slot = *core().devices.slots()[0];
  {
    ASSERT_OK_AND_ASSIGN(const Reservation all,
                         core().cache.ReserveOnDevice(slot, slot.budget->limit()));
    EXPECT_EQ(Held().device_bytes, 0u);
  }
  ExpectSolves(factor.handle(), kM * kM, a);
}

class RpcPostponedTest : public RpcMultifrontalTest {
 protected:
  static v1::FactorizeHeader Unmatched(const Triplets& a) {
    v1::FactorizeHeader header = Header(kStar, a, v1::ALGORITHM_MULTIFRONTAL);
    header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
    return header;
  }
  // Reserves all remaining memory while the job runs. The reservation lasts until the end of the
  // test.
  void TakeAllElse(bool on_host) {
    failpoints().Do("factorize.factor", [this, on_host] {
      MemoryBudget& budget =
          on_host ? core().devices.host_budget() : *core().devices.slots()[0]->budget;
      taken_ = budget.TryReserve(budget.limit() - budget.reserved());
    });
  }
  void ExpectCorrected(const Triplets& a) {
    const v1::Factor factor = MustFactor(Unmatched(a), a);
    EXPECT_GT(factor.sparse().perturbed_pivots(), 0);
    taken_.reset();
    const std::vector<double> b(kStar, 1.0);
    Solved solved;
    ASSERT_TRUE(Solve(factor.handle(), b, &solved).ok());
    EXPECT_TRUE(solved.result.has_corrections());
    EXPECT_EQ(solved.result.warnings_size(), 0);
    EXPECT_LT(BackwardError(a, false, solved.x, b), 1e-14);
  }

  std::optional<Reservation> taken_;
};

TEST_F(RpcPostponedTest, PivotsThatWereTooSmallAreEliminatedLater) {
  Start();
  const Triplets a = Star(0);
  const v1::Factor factor = MustFactor(Unmatched(a), a);
  EXPECT_EQ(factor.sparse().perturbed_pivots(), 0);
  EXPECT_LT(factor.quality(), 30);
  const std::vector<double> b(kStar, 1.0);
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), b, &solved).ok());
  EXPECT_FALSE(solved.result.has_corrections());
  EXPECT_LT(BackwardError(a, false, solved.x, b), 1e-15);
}

// A perturbation would be so large that it swallows the border: the perturbed matrix would be
// singular, although this one is not.
TEST_F(RpcPostponedTest, APerturbationMakesNoMatrixSingular) {
  Start();
  Triplets a;
  for (int64_t i = 0; i < kLeaves; ++i) {
    a.push_back({i, i, 0});
    for (const int64_t j : {kLeaves + 2 * i, kLeaves + 2 * i + 1}) {
      a.push_back({i, j, 1});
      a.push_back({j, i, 1});
    }
  }
  for (int64_t i = 0; i < kBorder; ++i) {
    for (int64_t j = 0; j < kBorder; ++j) {
      const int64_t value = (i * i + 3 * i * j) % 9 - 4 + (i == j ? 64 : 0);
      a.push_back({kLeaves + i, kLeaves + j, std::ldexp(static_cast<double>(value), -40)});
    }
  }
  const v1::Factor factor = MustFactor(Unmatched(a), a);
  EXPECT_EQ(factor.info(), 0);
  EXPECT_EQ(factor.sparse().perturbed_pivots(), 0);
  const std::vector<double> b(kStar, 1.0);
  Solved solved;
  const grpc::Status status = Solve(factor.handle(), b, &solved);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_LT(BackwardError(a, false, solved.x, b), 1e-15);
}

// The leaf's second pivot is zero and its row has a different scale. In the matched and scaled
// matrix the perturbation is of order 1, so that the error bound remains useful.
TEST_F(RpcPostponedTest, APivotOfAScaledFactorIsCountedInItsScales) {
  Start();
  constexpr double kUnit = 1e-20;
  constexpr int64_t kN = 102;
  Triplets a = {{0, 0, 1},     {0, 1, 1},           {1, 0, kUnit},
                {1, 1, kUnit}, {1, 2, 0.9 * kUnit}, {2, 1, 0.9}};
  for (int64_t i = 2; i < kN; ++i) {
    for (int64_t j = 2; j < kN; ++j) {
      a.push_back({i, j, i == j ? 1 : 0.005 * std::cos(static_cast<double>(i * i + 3 * i * j))});
    }
  }
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Sparse(kN, a);
  *header.mutable_rhs() = Dense(kN, 1);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_MULTIFRONTAL);
  header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_ON);
  header.mutable_solve()->set_error_bound(true);
  for (const v1::Operation op : {v1::OPERATION_NONE, v1::OPERATION_TRANSPOSE}) {
    SCOPED_TRACE(v1::Operation_Name(op));
    header.mutable_solve()->set_operation(op);
    TakeAllElse(/*on_host=*/false);
    std::vector<double> expected(kN, 1.0), b(kN);
    if (op == v1::OPERATION_TRANSPOSE) expected[1] /= kUnit;
    for (const Triplet& entry : a) {
      if (op == v1::OPERATION_NONE) {
        b[entry.row] += entry.value * expected[entry.column];
      } else {
        b[entry.column] += entry.value * expected[entry.row];
      }
    }
    const SolvedAtOnce solved = FactorizeAndSolve(header, BytesOf(a), Bytes(b));
    taken_.reset();
    ASSERT_TRUE(solved.status.ok()) << solved.status.error_message();
    EXPECT_EQ(solved.factor.sparse().perturbed_pivots(), 1);
    std::vector<double> x(kN);
    ASSERT_EQ(solved.data.size(), kN * sizeof(double));
    std::memcpy(x.data(), solved.data.data(), solved.data.size());
    double error = 0;
    for (int64_t i = 0; i < kN; ++i) error = std::max(error, std::abs(x[i] - expected[i]));
    EXPECT_LE(error / *std::max_element(x.begin(), x.end()), solved.result.forward_error_bound());
    EXPECT_LT(solved.result.forward_error_bound(), 1e-6);
  }
}

TEST_F(RpcPostponedTest, AnAnalysisForSomeValuesIsNotFoundForOthers) {
  Start();
  const Triplets zero = Star(0), large = Star(20);
  const v1::Factor postponed = MustFactor(Unmatched(zero), zero);
  const v1::Factor other = MustFactor(Unmatched(large), large);
  EXPECT_FALSE(postponed.sparse().analysis_reused());
  EXPECT_TRUE(other.sparse().analysis_reused()) << "the one of the pattern";
  EXPECT_LT(other.sparse().lu_entries(), postponed.sparse().lu_entries());
  EXPECT_LT(other.sparse().flops(), postponed.sparse().flops());
  const v1::Factor again = MustFactor(Unmatched(zero), zero);
  EXPECT_EQ(again.sparse().lu_entries(), postponed.sparse().lu_entries());
  EXPECT_EQ(again.sparse().flops(), postponed.sparse().flops());
}

TEST_F(RpcPostponedTest, HoldsTheLargerReservationUntilTheEnd) {
  Start();
  const Triplets zero = Star(0);
  const v1::Factor factor = MustFactor(Unmatched(zero), zero);
  EXPECT_EQ(Idle().device_reserved, static_cast<size_t>(factor.bytes()));
  EXPECT_GE(Idle().device_reserved, Idle().device_bytes);
  grpc::ClientContext context;
  v1::ReleaseFactorRequest request;
  request.set_handle(factor.handle());
  v1::ReleaseFactorResponse response;
  ASSERT_TRUE(stub().ReleaseFactor(&context, request, &response).ok());
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcPostponedTest, WithoutDeviceMemoryTheyArePerturbedAndCorrected) {
  Start();
  TakeAllElse(/*on_host=*/false);
  ExpectCorrected(Star(0));
}

TEST_F(RpcPostponedTest, WithoutHostMemoryTheyArePerturbedAndCorrected) {
  Start();
  TakeAllElse(/*on_host=*/true);
  ExpectCorrected(Star(0));
}

TEST_F(RpcPostponedTest, InOneCallToo) {
  Start();
  const Triplets a = Star(0);
  const std::vector<double> b(kStar, 1.0);
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Sparse(kStar, a);
  *header.mutable_options() = Unmatched(a).options();
  *header.mutable_rhs() = Dense(kStar, 1);
  const SolvedAtOnce answer = FactorizeAndSolve(header, BytesOf(a), Bytes(b));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.factor.sparse().perturbed_pivots(), 0);
  std::vector<double> x(kStar);
  ASSERT_EQ(answer.data.size(), kStar * sizeof(double));
  std::memcpy(x.data(), answer.data.data(), answer.data.size());
  EXPECT_LT(BackwardError(a, false, x, b), 1e-15);
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcMultifrontalTest, ReportsTheRowWithoutAMatching) {
  Start();
  // Rows 3 to 5 have entries in the same two columns only.
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
  // The solver of a dense factor makes `auto` choose a dense method. It is refused for a sparse
  // method chosen by name.
  header.mutable_solve()->set_solver(v1::SOLVER_TRSM);
  EXPECT_EQ(FactorizeAndSolve(header, BytesOf(a), Bytes(b)).status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_AUTO);
  const SolvedAtOnce answer = FactorizeAndSolve(header, BytesOf(a), Bytes(b));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.result.solver(), v1::SOLVER_TRSM);
}

TEST_F(RpcMultifrontalTest, WithoutMemoryForTheFactorNothingIsHeld) {
  Start(4096, size_t{1} << 20);
  constexpr int64_t kM = 60;
  const Triplets a = Grid(kM);
  ExpectRefused(Header(kM * kM, a), BytesOf(a), grpc::StatusCode::RESOURCE_EXHAUSTED, "");
}

}  // namespace
}  // namespace crout::testing
