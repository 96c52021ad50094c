// SPDX-License-Identifier: Apache-2.0

// Tests that batch jobs stay within their planned memory, and that they refuse batches that differ
// from the declaration.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/host/methods.h"
#include "tests/kernels/jobs/batch_jobs_testing.h"
#include "tests/support/fakes/fake_device.h"

namespace crout::testing::batch_plan_test {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class BatchPlanTest : public ::testing::Test {
 protected:
  host::Executor executor_{2};
  const std::unique_ptr<BatchLu> method_ = host::MakeIrrLu(executor_);
  FakeDevice device_;
  CountingResource& memory_ = device_.counting_memory();
  BatchJobs jobs_{device_, method_.get(), &memory_};
};

TEST_F(BatchPlanTest, AcceptsEmptyBatches) {
  ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, jobs_.Factor<double>({}));
  EXPECT_EQ(factor.factorization.summary.batch->extent.members, 0);
  ASSERT_OK(jobs_.Solve<double>(factor, {}));
  ASSERT_OK(jobs_.Factor<double>({RandomMember<double>(0, 0, 1), RandomMember<double>(0, 4, 1)}));
}

TEST_F(BatchPlanTest, RefusesSizesThatDifferFromTheDeclaration) {
  const std::vector<Member<double>> members = MixedMembers<double>();
  BatchExtent extent;
  Block(ShapesOf(members), members, &extent);
  const auto refused = [&](auto change) {
    BatchExtent declared = extent;
    change(declared);
    jobs_.Declare(declared);
    return jobs_.Factor(members).status();
  };
  EXPECT_THAT(refused([](BatchExtent& e) { ++e.max_rows; }),
              FailsWith(kInvalid, "max_rows = 70; the header declares 71"));
  EXPECT_THAT(refused([](BatchExtent& e) { --e.max_cols; }), FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { --e.total_rows; }), FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { e.bytes += 8; }), FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { e.members = -1; }), FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { e.max_rows = -1; }), FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { e.total_cols = int64_t{1} << 62; }),
              FailsWith(kInvalid, ""));
  EXPECT_THAT(refused([](BatchExtent& e) { e.bytes = SIZE_MAX - 64; }), FailsWith(kInvalid, ""));
  EXPECT_OK(refused([](BatchExtent&) {}));
  EXPECT_EQ(memory_.live_bytes(), 0u);
}

// Returns the extent that a plan uses before the sizes of the members arrive. Sets `exact` to the
// true extent.
BatchExtent Planned(const std::vector<MatrixShape>& shapes, BatchExtent* exact) {
  std::vector<BatchMember> members(shapes.size());
  const auto packed = PackMembers(DType::kFloat32, shapes, members);
  EXPECT_OK(packed);
  *exact = *packed;
  BatchExtent declared = *packed;
  declared.max_diagonal = 0;
  declared.diagonals = 0;
  EXPECT_OK(BatchBytes(declared));
  return WithMaxDiagonals(declared);
}

TEST_F(BatchPlanTest, PlansTheLongestPossibleDiagonals) {
  std::mt19937 generator(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<MatrixShape> shapes(generator() % 5);
    for (MatrixShape& shape : shapes) {
      // Tall, wide and square shapes.
      shape = {int64_t{1} << generator() % 9, int64_t{1} << generator() % 9};
      shape.rows += generator() % 3;
      shape.cols -= generator() % 2;
    }
    BatchExtent exact;
    const BatchExtent planned = Planned(shapes, &exact);
    EXPECT_GE(planned.max_diagonal, exact.max_diagonal);
    EXPECT_GE(planned.diagonals, exact.diagonals);
    EXPECT_LE(planned.max_diagonal, std::min(exact.max_rows, exact.max_cols));
    EXPECT_LE(planned.diagonals, std::min(exact.total_rows, exact.total_cols));
  }
}

TEST_F(BatchPlanTest, DoesNotPlanThinMembersAsOneLargeMember) {
  BatchExtent exact;
  const BatchExtent two = Planned({{100'000, 7}, {9, 200'000}}, &exact);
  EXPECT_EQ(two.max_diagonal, 9);
  EXPECT_EQ(two.diagonals, exact.diagonals);
  const BatchExtent three = Planned({{100'000, 7}, {9, 200'000}, {300, 200}}, &exact);
  EXPECT_EQ(three.max_diagonal, 309);
  const BatchExtent alike = Planned({{50, 40}, {50, 40}}, &exact);
  EXPECT_EQ(alike.max_diagonal, 40);
  EXPECT_EQ(alike.diagonals, 80);
}

TEST_F(BatchPlanTest, RefusesSystemsThatMatchNoMember) {
  std::vector<Member<double>> members = MixedMembers<double>();
  members.push_back(RandomMember<double>(4, 3, 1));
  ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, jobs_.Factor(members));
  const auto rhs = [](int64_t member, int64_t rows) {
    return Rhs<double>{member, RandomMember<double>(rows, 1, 1)};
  };
  const auto status = [&](const std::vector<Rhs<double>>& systems) {
    return jobs_.Solve(factor, systems).status();
  };
  EXPECT_THAT(status({rhs(9, 5)}), FailsWith(kInvalid, "members 0 to 8"));
  EXPECT_THAT(status({rhs(-1, 5)}), FailsWith(kInvalid, ""));
  EXPECT_THAT(status({rhs(1, 1), rhs(0, 5)}), FailsWith(kInvalid, ""));
  EXPECT_THAT(status({rhs(1, 1), rhs(1, 1)}), FailsWith(kInvalid, ""));
  EXPECT_THAT(status({rhs(8, 4)}), FailsWith(kInvalid, "4 x 3"));
  EXPECT_THAT(status({rhs(0, 6)}), FailsWith(kInvalid, "declares"));
  EXPECT_OK(status({rhs(0, 5), rhs(7, 33)}));
  jobs_.options().keep_matrix = false;
  ASSERT_OK_AND_ASSIGN(const FactoredBatch dropped, jobs_.Factor(members));
  EXPECT_THAT(jobs_.Solve<double>(dropped, {rhs(0, 5)}).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, ""));
}

// An allocation per member would be too slow. Counts allocations because times depend on the
// machine.
TEST_F(BatchPlanTest, AllocatesAsOftenForAHundredThousandMembersAsForTen) {
  const auto allocations = [&](int64_t count) {
    std::vector<Member<double>> members;
    for (int64_t k = 0; k < count; ++k) members.push_back(RandomMember<double>(k % 3, k % 3, 7));
    const int64_t before = memory_.gate().arrivals();
    const auto factor = jobs_.Factor(members);
    EXPECT_OK(factor.status());
    EXPECT_OK(
        jobs_.Solve<double>(*factor, {{count - 1, RandomMember<double>((count - 1) % 3, 1, 1)}})
            .status());
    return memory_.gate().arrivals() - before;
  };
  const int64_t few = allocations(10);
  EXPECT_GT(few, 0);
  EXPECT_EQ(allocations(100'000), few);
}

// The orders of the local matrices of a domain decomposition, in which the number of neighbours
// varies.
TEST_F(BatchPlanTest, SolvesBatchesOfADomainDecomposition) {
  std::vector<Member<double>> members;
  std::vector<Rhs<double>> systems;
  for (int64_t k = 0; k < 64; ++k) {
    const int64_t n = 104 + k * 74 / 63;
    members.push_back(RandomMember<double>(n, n, k));
    systems.push_back({k, RandomMember<double>(n, 2, 100 + k)});
  }
  EXPECT_EQ(members.back().rows, 178);
  ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, jobs_.Factor(members));
  ASSERT_OK_AND_ASSIGN(const SolvedBatch<double> solved, jobs_.Solve(factor, systems));
  for (size_t k = 0; k < members.size(); ++k) {
    EXPECT_EQ(factor.figures.info[k], 0);
    EXPECT_LT(factor.figures.quality[k], kPoorQuality);
    EXPECT_LT(solved.errors[k], 1e-14);
  }
}

TEST_F(BatchPlanTest, FreesAllMemoryAfterStopsAndFailedAllocations) {
  const std::vector<Member<double>> members = MixedMembers<double>();
  EXPECT_THAT(jobs_.Factor(members, [] { return true; }).status(),
              FailsWith(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(memory_.live_bytes(), 0u);
  int failed = 0;
  while (true) {
    memory_.FailAllocations(1, failed + 1);  // after the allocation of the upload
    const auto factor = jobs_.Factor(members);
    memory_.FailAllocations(0);
    if (factor.ok()) break;
    EXPECT_THAT(factor.status(), FailsWith(absl::StatusCode::kResourceExhausted, ""));
    EXPECT_EQ(memory_.live_bytes(), 0u);
    ++failed;
  }
  EXPECT_GE(failed, 4);
}

}  // namespace
}  // namespace crout::testing::batch_plan_test
