// Members of a batch that occupy a GPU alone.
#include <complex>
#include <vector>

#include "tests/gpu/jobs.h"
#include "tests/kernels/batch_jobs_testing.h"
#include "tests/support/status_matchers.h"

namespace crout {
namespace {

using testing::BatchJobs;
using testing::FactoredBatch;
using testing::Member;
using testing::RandomMember;
using testing::Rhs;
using testing::SolvedBatch;

class LargeMembersTest : public GpuTest {
 protected:
  template <class T>
  static void ExpectOwnBits() {
    BatchJobs jobs(Gpu(), Gpu().batch_lu());
    // The last one begins at another multiple of 16 bytes than the first of a batch.
    const std::vector<Member<T>> members = {
        RandomMember<T>(4200, 4200, 1), RandomMember<T>(3, 3, 2), RandomMember<T>(3072, 3100, 3),
        RandomMember<T>(61, 61, 4), RandomMember<T>(4099, 4099, 5)};
    ASSERT_OK_AND_ASSIGN(const FactoredBatch together, jobs.Factor(members));
    std::vector<Rhs<T>> systems;
    for (const int64_t k : {0, 1, 3, 4}) {
      systems.push_back({k, RandomMember<T>(members[k].rows, 2, 10 + k)});
    }
    ASSERT_OK_AND_ASSIGN(const SolvedBatch<T> solved, jobs.Solve(together, systems));
    for (size_t k = 0; k < members.size(); ++k) {
      EXPECT_EQ(together.figures.info[k], 0) << k;
      EXPECT_LE(together.figures.quality[k], 30) << k;
      EXPECT_GE(together.figures.pivot_growth[k], 0.5) << k;
    }
    for (const double error : solved.errors) EXPECT_LE(error, 200 * UnitRoundoff(kDTypeOf<T>));

    ASSERT_OK_AND_ASSIGN(const FactoredBatch alone, jobs.Factor<T>({members[4]}));
    EXPECT_EQ(alone.figures.quality[0], together.figures.quality[4]);
    ASSERT_OK_AND_ASSIGN(const SolvedBatch<T> again, jobs.Solve<T>(alone, {{0, systems.back().b}}));
    EXPECT_EQ(again.x[0].elements, solved.x.back().elements);
  }
};

TEST_F(LargeMembersTest, HaveTheirOwnBitsInAnyBatch) {
  ExpectOwnBits<double>();
  ExpectOwnBits<std::complex<float>>();
}

TEST_F(LargeMembersTest, ASingularOneIsItsOwnAffair) {
  BatchJobs jobs(Gpu(), Gpu().batch_lu());
  Member<double> singular = RandomMember<double>(4100, 4100, 1);
  constexpr int64_t kColumn = 7;
  for (int64_t i = 0; i < singular.rows; ++i) singular(i, kColumn) = 0;
  const std::vector<Member<double>> members = {RandomMember<double>(40, 40, 2), singular,
                                               RandomMember<double>(4096, 4096, 3)};
  ASSERT_OK_AND_ASSIGN(const FactoredBatch factor, jobs.Factor(members));
  EXPECT_EQ(factor.figures.info[0], 0);
  EXPECT_EQ(factor.figures.info[1], kColumn + 1);
  EXPECT_EQ(factor.figures.info[2], 0);
  EXPECT_LE(factor.figures.quality[2], 30);
}

}  // namespace
}  // namespace crout
