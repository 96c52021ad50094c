// SPDX-License-Identifier: Apache-2.0

// Tests irr_lu's solves on the GPU: each member's solution is independent of the other members.
#include "kernels/cuda/irr_lu/irr_lu.h"

#include <cmath>
#include <complex>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "tests/gpu/irr_lu/irr_lu_testing.h"
#include "tests/support/ratios.h"

namespace crout::cuda::irr_getrs_test {
namespace {

using testing::Member;

constexpr Op kOps[] = {Op::kNone, Op::kTranspose, Op::kConjugateTranspose};

template <class T>
struct Systems {
  std::vector<Member<T>> a;
  std::vector<Member<T>> b;

  void Add(int64_t n, int64_t nrhs) {
    a.push_back(testing::RandomMember<T>(n, n, 2 * a.size()));
    b.push_back(testing::RandomMember<T>(n, nrhs, 2 * a.size() + 1));
  }
};

// Returns systems with orders below, at and above the sizes of warps, blocks and blocks of threads.
// The numbers of right-hand sides are below, at and above the size of a chunk.
template <class T>
Systems<T> MixedSystems() {
  Systems<T> systems;
  for (const auto& [n, nrhs] : std::initializer_list<std::pair<int64_t, int64_t>>{{0, 0},
                                                                                  {1, 1},
                                                                                  {3, 7},
                                                                                  {0, 2},
                                                                                  {64, 1},
                                                                                  {65, 5},
                                                                                  {9, 0},
                                                                                  {30, 30},
                                                                                  {100, 2},
                                                                                  {2, 40},
                                                                                  {32, 4},
                                                                                  {33, 16},
                                                                                  {16, 16},
                                                                                  {257, 3},
                                                                                  {40, 130},
                                                                                  {600, 1},
                                                                                  {1050, 3}}) {
    systems.Add(n, nrhs);
  }
  for (int64_t n = 1; n < 40; ++n) systems.Add(n, n % 4);
  return systems;
}

class IrrGetrsTest : public IrrLuTest {
 protected:
  template <class T>
  static Systems<T> SystemsToTest() {
    if (!IsWatched()) return MixedSystems<T>();
    Systems<T> systems;
    for (const auto& [n, nrhs] :
         std::initializer_list<std::pair<int64_t, int64_t>>{{0, 2}, {3, 7}, {33, 16}, {65, 5}}) {
      systems.Add(n, nrhs);
    }
    return systems;
  }

  template <class T>
  static void ExpectSolves() {
    SCOPED_TRACE(NameOf(kDTypeOf<T>));
    const Systems<T> systems = SystemsToTest<T>();
    GpuFactors<T> factors(systems.a);
    for (const Op op : kOps) {
      const auto x = factors.Solved(op, systems.b);
      for (size_t k = 0; k < x.size(); ++k) {
        SCOPED_TRACE(::testing::Message() << systems.a[k].rows << ", " << systems.b[k].cols
                                          << " right-hand sides, op " << static_cast<int>(op));
        const double ratio = testing::SolveRatio<std::complex<double>>(
            Elements(systems.a[k]), systems.a[k].rows, op, Elements(x[k]), Elements(systems.b[k]),
            systems.b[k].cols, kDTypeOf<T>);
        EXPECT_LT(ratio, testing::kThreshold);
      }
    }
  }

  template <class T>
  static void ExpectSameBitsInAnyBatch() {
    SCOPED_TRACE(NameOf(kDTypeOf<T>));
    const Systems<T> systems = SystemsToTest<T>();
    GpuFactors<T> factors(systems.a);
    std::vector<std::vector<Member<T>>> together, strided;  // one per op
    for (const Op op : kOps) {
      together.push_back(factors.Solved(op, systems.b));
      strided.push_back(factors.Solved(op, systems.b, 2));
    }
    for (size_t k = 0; k < systems.a.size(); ++k) {
      GpuFactors<T> alone({systems.a[k]});
      for (size_t op = 0; op < std::size(kOps); ++op) {
        SCOPED_TRACE(::testing::Message() << k << ", op " << op);
        const Member<T> x = alone.Solved(kOps[op], {systems.b[k]})[0];
        EXPECT_TRUE(testing::SameBits(together[op][k].elements, strided[op][k].elements));
        EXPECT_TRUE(testing::SameBits(together[op][k].elements, x.elements));
      }
    }
  }
};

TEST_F(IrrGetrsTest, SolvesMixedSizesAndNumbersOfColumns) {
  ExpectSolves<float>();
  ExpectSolves<double>();
  ExpectSolves<std::complex<float>>();
  ExpectSolves<std::complex<double>>();
}

// Factors and solves each member alone as well.
TEST_F(IrrGetrsTest, AMemberHasTheSameBitsInAnyBatch) {
  ExpectSameBitsInAnyBatch<float>();
  ExpectSameBitsInAnyBatch<double>();
  ExpectSameBitsInAnyBatch<std::complex<float>>();
  ExpectSameBitsInAnyBatch<std::complex<double>>();
}

TEST_F(IrrGetrsTest, ReturnsNanForSingularMembers) {
  std::vector<int64_t> orders = {3, 50, 1030};
  if (IsWatched()) orders = {3, 50};
  for (const int64_t n : orders) {
    Systems<double> systems;
    systems.Add(20, 2);
    systems.Add(n, 2);
    systems.Add(60, 1);
    for (int64_t i = 0; i < n; ++i) systems.a[1](i, n / 2) = 0;
    const auto x = GpuFactors<double>(systems.a).Solved(Op::kNone, systems.b);
    for (const double e : x[1].elements) EXPECT_TRUE(std::isnan(e));
    for (const double e : x[0].elements) EXPECT_TRUE(std::isfinite(e));
    for (const double e : x[2].elements) EXPECT_TRUE(std::isfinite(e));
  }
}

// A member without right-hand sides may have any shape.
TEST_F(IrrGetrsTest, AcceptsRectangularMembersWithoutRightHandSides) {
  const auto a = RandomMembers<double>({{9, 4}, {4, 9}, {90, 40}, {10, 10}});
  GpuFactors<double> factors(a);
  const auto x =
      factors.Solved(Op::kNone, RandomMembers<double>({{9, 0}, {4, 0}, {3, 0}, {10, 1}}));
  EXPECT_EQ(x[3].elements.size(), 10U);
}

}  // namespace
}  // namespace crout::cuda::irr_getrs_test
