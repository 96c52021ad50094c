// SPDX-License-Identifier: Apache-2.0

// Tests batches of systems from applications, factored and solved as jobs of a device.
#include <string>
#include <utility>
#include <vector>

#include "kernels/lu_algorithm.h"
#include "tests/bench/crout_bench/poisson_cube.h"
#include "tests/kernels/jobs/batch_jobs_testing.h"
#include "tests/support/runners/device_under_test.h"

namespace crout::testing::real_batches_test {
namespace {

class RealBatchesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (DeviceUnderTest() == nullptr) GTEST_SKIP() << "the machine has no such device";
  }

  // Factors the members, which must be nonsingular, and solves each with one right-hand side.
  // Expects the accuracy of a single solve.
  static void ExpectSolves(const std::vector<Member<double>>& members) {
    BatchJobs jobs(*DeviceUnderTest(), DeviceUnderTest()->batch_lu());
    ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, jobs.Factor(members));
    std::vector<Rhs<double>> systems;
    for (const Member<double>& member : members) {
      const int64_t k = std::ssize(systems);
      systems.push_back({k, RandomMember<double>(member.rows, 1, 100 + k)});
    }
    ASSERT_OK_AND_ASSIGN(const SolvedBatch<double> solved, jobs.Solve(factor, systems));
    EXPECT_EQ(factor.factorization.summary.batch->singular, 0);
    for (size_t k = 0; k < members.size(); ++k) {
      SCOPED_TRACE(::testing::Message() << k << ", order " << members[k].rows);
      EXPECT_EQ(factor.figures.info[k], 0);
      EXPECT_LT(factor.figures.quality[k], kThreshold);
      EXPECT_LT(solved.errors[k], AcceptedBackwardError(DType::kFloat64, members[k].rows));
    }
  }
};

TEST_F(RealBatchesTest, SolvesSeqPele) {
  const std::vector<Member<double>> members = SeqPele();
  if (members.empty()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  ExpectSolves(members);
}

// The local matrices of Poisson's equation on a cube of 4 x 4 x 4 subdomains with five elements
// along each edge. Interior subdomains share all six faces, others fewer.
TEST_F(RealBatchesTest, SolvesADomainDecomposition) {
  constexpr int64_t kSubdomains = 4;
  constexpr int64_t kElements = 5;
  const auto at_end = [](int64_t i) { return i == 0 || i == kSubdomains - 1 ? 1 : 0; };
  std::vector<Member<double>> members;
  for (int64_t i = 0; i < kSubdomains * kSubdomains * kSubdomains; ++i) {
    const int sides = 6 - at_end(i % kSubdomains) - at_end(i / kSubdomains % kSubdomains) -
                      at_end(i / kSubdomains / kSubdomains);
    bench::LocalProblem local = bench::MakePoissonCube(kElements, {kSubdomains, sides});
    members.push_back({local.n, local.n, std::move(local.values)});
  }
  EXPECT_EQ(members.size(), 64);
  const auto by_order = [](const Member<double>& a, const Member<double>& b) {
    return a.rows < b.rows;
  };
  const auto [least, most] = std::minmax_element(members.begin(), members.end(), by_order);
  EXPECT_EQ(least->rows, 104);
  EXPECT_EQ(most->rows, 178);
  ExpectSolves(members);
}

}  // namespace
}  // namespace crout::testing::real_batches_test
