// SPDX-License-Identifier: Apache-2.0

// Tests delayed pivots of sparse factors over RPC: they are eliminated in later fronts, or
// perturbed and their effect corrected if there is no memory for the larger factor.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "tests/server/rpc/sparse/sparse_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::delayed_pivots_test {
namespace {

class RpcPostponedTest : public RpcSparseTest {
 protected:
  RpcPostponedTest() : RpcSparseTest({v1::ALGORITHM_MULTIFRONTAL}) {}

  static v1::FactorizeHeader Unmatched(const Triplets& a) {
    v1::FactorizeHeader header = Header(kStar, a, v1::ALGORITHM_MULTIFRONTAL);
    header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
    return header;
  }
  // Reserves all remaining memory of the device or the host when the job runs, until taken_ is
  // reset.
  void ReserveRemainingMemory(bool on_host) {
    failpoints().Do("factorize.factor", [this, on_host] {
      MemoryBudget& budget =
          on_host ? core().engine.devices.host_budget() : *core().engine.devices.slots()[0]->budget;
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

TEST_F(RpcPostponedTest, SmallPivotsAreDelayed) {
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

// The perturbation of a pivot would be so large that rounding removes the entries of the border.
// The perturbed matrix would be singular, although this one is not.
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

// The second pivot of the leaf is zero, and its row has a different scale. In the matched and
// scaled matrix, the perturbation is of order 1, so that the error bound remains useful.
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
    ReserveRemainingMemory(/*on_host=*/false);
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
  ReserveRemainingMemory(/*on_host=*/false);
  ExpectCorrected(Star(0));
}

TEST_F(RpcPostponedTest, WithoutHostMemoryTheyArePerturbedAndCorrected) {
  Start();
  ReserveRemainingMemory(/*on_host=*/true);
  ExpectCorrected(Star(0));
}

TEST_F(RpcPostponedTest, InFactorizeAndSolve) {
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

}  // namespace
}  // namespace crout::testing::delayed_pivots_test
