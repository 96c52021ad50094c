// SPDX-License-Identifier: Apache-2.0

// Tests large members of batches, which crout_lu factors a few at a time.
#include <algorithm>
#include <atomic>
#include <complex>
#include <thread>
#include <vector>

#include "tests/gpu/harness/jobs.h"
#include "tests/kernels/jobs/batch_jobs_testing.h"
#include "tests/support/status_matchers.h"

namespace crout::large_members_test {
namespace {

using testing::BatchJobs;
using testing::FactoredBatch;
using testing::Member;
using testing::RandomMember;
using testing::Rhs;
using testing::SolvedBatch;

// Returns more large members than are factored at once. Their elements start at different multiples
// of 16 bytes.
template <class T>
std::vector<Member<T>> LargeAndSmallMembers() {
  return {RandomMember<T>(2200, 2200, 1), RandomMember<T>(3, 3, 2),
          RandomMember<T>(2048, 2100, 3), RandomMember<T>(61, 61, 4),
          RandomMember<T>(3299, 3299, 5), RandomMember<T>(2900, 2900, 6),
          RandomMember<T>(2051, 2051, 7), RandomMember<T>(2048, 2048, 8)};
}

// Returns right-hand sides for the square members.
template <class T>
std::vector<Rhs<T>> SystemsOf(const std::vector<Member<T>>& members) {
  std::vector<Rhs<T>> systems;
  for (int64_t k = 0; k < std::ssize(members); ++k) {
    const int64_t n = members[k].rows;
    if (n == members[k].cols) systems.push_back({k, RandomMember<T>(n, 2, 10 + k)});
  }
  return systems;
}

class LargeMembersTest : public GpuTest {
 protected:
  template <class T>
  static void ExpectOwnBits() {
    BatchJobs jobs(Gpu(), Gpu().batch_lu());
    const std::vector<Member<T>> members = LargeAndSmallMembers<T>();
    ASSERT_OK_AND_ASSIGN(const FactoredBatch together, jobs.Factor(members));
    for (size_t k = 0; k < members.size(); ++k) {
      EXPECT_EQ(together.figures.info[k], 0) << k;
      EXPECT_LE(together.figures.quality[k], 30) << k;
      EXPECT_GE(together.figures.pivot_growth[k], 0.5) << k;
    }
    const std::vector<Rhs<T>> systems = SystemsOf(members);
    ASSERT_OK_AND_ASSIGN(const SolvedBatch<T> solved, jobs.Solve(together, systems));
    for (const double error : solved.errors) EXPECT_LE(error, 200 * UnitRoundoff(kDTypeOf<T>));
    for (size_t s = 0; s < systems.size(); ++s) {
      const int64_t k = systems[s].member;
      SCOPED_TRACE(k);
      ASSERT_OK_AND_ASSIGN(const FactoredBatch alone, jobs.Factor<T>({members[k]}));
      EXPECT_EQ(alone.figures.quality[0], together.figures.quality[k]);
      EXPECT_EQ(alone.figures.pivot_growth[0], together.figures.pivot_growth[k]);
      ASSERT_OK_AND_ASSIGN(const SolvedBatch<T> again, jobs.Solve<T>(alone, {{0, systems[s].b}}));
      EXPECT_EQ(again.x[0].elements, solved.x[s].elements);
    }
  }
};

TEST_F(LargeMembersTest, GivesTheSameBitsInAnyBatch) {
  ExpectOwnBits<double>();
  ExpectOwnBits<std::complex<float>>();
}

TEST_F(LargeMembersTest, ASingularMemberDoesNotAffectOthers) {
  BatchJobs jobs(Gpu(), Gpu().batch_lu());
  Member<double> singular = RandomMember<double>(2100, 2100, 1);
  constexpr int64_t kColumn = 7;
  for (int64_t i = 0; i < singular.rows; ++i) singular(i, kColumn) = 0;
  const std::vector<Member<double>> members = {RandomMember<double>(40, 40, 2), singular,
                                               RandomMember<double>(2096, 2096, 3)};
  ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, jobs.Factor(members));
  EXPECT_EQ(factor.figures.info[0], 0);
  EXPECT_EQ(factor.figures.info[1], kColumn + 1);
  EXPECT_EQ(factor.figures.info[2], 0);
  EXPECT_LE(factor.figures.quality[2], 30);
}

// Stops in the first panel of the first lane, in the first panel of a later lane, or while all
// lanes run.
TEST_F(LargeMembersTest, FreesAllMemoryWhenStopped) {
  BatchJobs jobs(Gpu(), Gpu().batch_lu());
  const std::vector<Member<double>> members = LargeAndSmallMembers<double>();
  ASSERT_OK_AND_ASSIGN(const FactoredBatch undisturbed, jobs.Factor(members));
  const std::vector<Rhs<double>> systems = SystemsOf(members);
  ASSERT_OK_AND_ASSIGN(const SolvedBatch<double> solved, jobs.Solve(undisturbed, systems));
  const size_t before = Gpu().memory_stats().pool_used_bytes;
  for (const int leaves : {3, 40, 200}) {
    int polls = 0;
    const auto stopped = jobs.Factor(members, [&] { return polls++ >= leaves; });
    EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled) << stopped.status();
    EXPECT_GT(polls, leaves);
    EXPECT_EQ(Gpu().memory_stats().pool_used_bytes, before);
  }
  ASSERT_OK_AND_ASSIGN(const FactoredBatch again, jobs.Factor(members));
  ASSERT_OK_AND_ASSIGN(const SolvedBatch<double> solved_again, jobs.Solve(again, systems));
  for (size_t s = 0; s < systems.size(); ++s) {
    EXPECT_EQ(solved_again.x[s].elements, solved.x[s].elements) << s;
  }
}

// The plan has only the batch's largest numbers of rows and columns, and assumes a member with
// both. Each workspace has this size, so fewer members are factored at once.
TEST_F(LargeMembersTest, FactorsTallAndWideMembersWithinThePlan) {
  BatchJobs jobs(Gpu(), Gpu().batch_lu());
  const std::vector<Member<float>> members = {RandomMember<float>(5000, 4000, 1),
                                              RandomMember<float>(4000, 5000, 2)};
  ASSERT_OK_AND_ASSIGN(const FactoredBatch together, jobs.Factor(members));
  for (size_t k = 0; k < members.size(); ++k) {
    SCOPED_TRACE(k);
    ASSERT_OK_AND_ASSIGN(const FactoredBatch alone, jobs.Factor<float>({members[k]}));
    EXPECT_EQ(together.figures.info[k], 0);
    EXPECT_LE(together.figures.quality[k], 30);
    EXPECT_EQ(together.figures.quality[k], alone.figures.quality[0]);
    EXPECT_EQ(together.figures.pivot_growth[k], alone.figures.pivot_growth[0]);
  }
}

// A batch runs on its own stream while all other streams are in use.
TEST_F(LargeMembersTest, ConcurrentBatchesDoNotAffectEachOther) {
  const std::vector<Member<double>> members = LargeAndSmallMembers<double>();
  const std::vector<Rhs<double>> systems = SystemsOf(members);
  std::vector<SolvedBatch<double>> solved(3);
  {
    std::vector<std::jthread> threads;
    for (SolvedBatch<double>& one : solved) {
      threads.emplace_back([&members, &systems, &one] {
        BatchJobs jobs(Gpu(), Gpu().batch_lu());
        ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, jobs.Factor(members));
        ASSERT_OK_AND_ASSIGN(one, jobs.Solve(factor, systems));
      });
    }
  }
  for (const SolvedBatch<double>& one : solved) {
    ASSERT_EQ(one.x.size(), systems.size());
    for (size_t s = 0; s < systems.size(); ++s) {
      EXPECT_EQ(one.x[s].elements, solved[0].x[s].elements) << s;
    }
  }
}

// Each concurrently factored member needs a workspace and 32 MiB for cuBLAS. At most eight members
// are factored concurrently, and their workspaces have at most half of the batch's bytes.
TEST_F(LargeMembersTest, PlansTheWorkspacesOfLargeMembers) {
  constexpr size_t kOfCublas = size_t{32} << 20;
  const auto bytes = [](int64_t members, int64_t n) {
    std::vector<BatchMember> places(members);
    const auto extent =
        PackMembers(DType::kFloat64, std::vector<MatrixShape>(members, {n, n}), places);
    EXPECT_OK(extent);
    const auto workspace = Gpu().batch_lu()->FactorWorkspaceBytes(*extent);
    EXPECT_OK(workspace);
    return workspace->device;
  };
  constexpr int64_t kOrder = 5000;
  const size_t one = bytes(1, kOrder);
  const size_t each = bytes(2, kOrder) - one;
  EXPECT_GE(each, 2 * kOfCublas);
  EXPECT_NEAR(static_cast<double>(bytes(3, kOrder) - one), 2.0 * static_cast<double>(each), 4096);
  EXPECT_NEAR(static_cast<double>(bytes(8, kOrder) - one), 7.0 * static_cast<double>(each), 4096);
  EXPECT_LT(bytes(9, kOrder) - bytes(8, kOrder), kOfCublas / 32);
  EXPECT_LT(bytes(3, 2048) - bytes(1, 2048), kOfCublas / 32);
}

// A tall and a wide member with few columns or rows reserve no workspace for crout_lu. The batch's
// largest numbers of rows and columns alone would be those of a large member.
TEST_F(LargeMembersTest, ReservesNoWorkspaceForThinMembers) {
  std::vector<BatchMember> places(2);
  ASSERT_OK_AND_ASSIGN(
      const BatchExtent extent,
      PackMembers(DType::kFloat64, std::vector<MatrixShape>{{200'000, 20}, {20, 200'000}}, places));
  BatchFactorizeOptions options;
  options.method = Gpu().batch_lu();
  ASSERT_OK_AND_ASSIGN(const BatchFactorizePlan plan, PlanBatchFactorize(options, extent));
  EXPECT_LT(plan.buffers.bytes(plan.workspace), size_t{16} << 20);
}

}  // namespace
}  // namespace crout::large_members_test
