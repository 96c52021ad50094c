// SPDX-License-Identifier: Apache-2.0

// Tests irr_lu's factorization on the GPU: each member has the host's factor in any batch.
#include "kernels/cuda/irr_lu/irr_lu.h"

#include <complex>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/host/irr_lu/member_probe.h"
#include "tests/gpu/irr_lu/irr_lu_testing.h"

namespace crout::cuda::irr_getrf_test {
namespace {

using testing::FactoredMember;
using testing::Member;

// Expects the growth and quality that the host computes for the same factor.
template <class T>
void ExpectFiguresOf(Member<T> a, FactoredMember<T> factor) {
  BatchExtent extent;
  extent.max_rows = static_cast<int32_t>(a.rows);
  extent.max_cols = static_cast<int32_t>(a.cols);
  extent.max_diagonal = static_cast<int32_t>(factor.diagonal());
  std::vector<double> work(host::MemberProbe<T>::WorkBytes(extent) / sizeof(double) + 1);
  host::MemberProbe<T> probe(extent, reinterpret_cast<std::byte*>(work.data()));
  probe.Start({a.elements.data(), a.rows, a.cols, a.rows});
  const auto [growth, quality, condition] =
      probe.Finish({factor.lu.elements.data(), a.rows, a.cols, a.rows}, factor.ipiv.data());
  EXPECT_NEAR(factor.growth, growth, 1e-14 * growth);
  // The quality of float64 factors is as small as the probe's roundoff.
  const double own = UnitRoundoff(DType::kFloat64) / UnitRoundoff(kDTypeOf<T>);
  EXPECT_NEAR(factor.quality, quality, 1e-9 * quality + own);
  EXPECT_LT(factor.quality, testing::kThreshold);
}

// Expects PA = LU up to roundoff and the LAPACK pivots of the host's irr_lu. Compares pivots of
// large random matrices only in float64, because candidates in single precision may differ by less
// than the roundoff.
template <class T>
void ExpectGood(const Member<T>& a, const FactoredMember<T>& factor,
                const FactoredMember<T>& of_host) {
  SCOPED_TRACE(::testing::Message() << a.rows << " x " << a.cols);
  constexpr int64_t kLarge = 500;
  const bool large = factor.diagonal() >= kLarge;
  EXPECT_EQ(factor.info, of_host.info);
  if (!large || RealOf(kDTypeOf<T>) == DType::kFloat64) {
    EXPECT_EQ(factor.ipiv, of_host.ipiv);
  }
  if (a.elements.empty()) {
    EXPECT_EQ(factor.growth, 1);
    EXPECT_EQ(factor.quality, 0);
    return;
  }
  ExpectFiguresOf(a, factor);
  if (!large) {
    EXPECT_LT(testing::Ratio(a, factor), testing::kThreshold);
  }
}

// Returns empty, square, tall and wide shapes below, at and above the sizes of warps, panels,
// blocks, chunks and blocks of threads.
std::vector<MatrixShape> MixedShapes(bool few) {
  if (few) {  // at least one for each team and each kind of panel
    return {{0, 0},  {1, 1},   {0, 4},   {9, 9},    {31, 32},  {32, 5},   {33, 33},
            {20, 1}, {48, 90}, {90, 48}, {129, 40}, {257, 33}, {40, 161}, {520, 20}};
  }
  std::vector<MatrixShape> shapes = {
      {0, 0},   {1, 1},   {0, 4},    {3, 0},    {8, 8},    {9, 9},    {16, 16},   {17, 17},
      {32, 32}, {33, 33}, {31, 32},  {32, 5},   {5, 32},   {1, 20},   {20, 1},    {64, 64},
      {65, 65}, {1, 200}, {200, 1},  {48, 100}, {100, 48}, {96, 96},  {128, 128}, {129, 200},
      {10, 90}, {90, 10}, {161, 40}, {40, 161}, {256, 30}, {30, 256}, {257, 33},  {0, 3000}};
  uint64_t state = 1;
  for (int k = 0; k < 40; ++k) {
    state = state * 6364136223846793005 + 1442695040888963407;
    shapes.push_back(
        {static_cast<int64_t>((state >> 33) % 80), static_cast<int64_t>((state >> 45) % 80)});
  }
  return shapes;
}

class IrrGetrfTest : public IrrLuTest {
 protected:
  template <class T>
  static void ExpectFactors(const std::vector<MatrixShape>& shapes) {
    SCOPED_TRACE(NameOf(kDTypeOf<T>));
    const auto members = RandomMembers<T>(shapes);
    const auto factors = Factored(members);
    const auto of_host = testing::Factored(members);
    for (size_t k = 0; k < members.size(); ++k) {
      SCOPED_TRACE(k);
      ExpectGood(members[k], factors[k], of_host[k]);
    }
  }

  // Returns the factor of `bad` in a batch. The other members must have the same bits as without
  // it.
  template <class T>
  static FactoredMember<T> FactoredAmongOthers(const Member<T>& bad) {
    std::vector<MatrixShape> others = {{5, 5}, {70, 70}, {20, 30}, {300, 40}};
    if (IsWatched()) others = {{5, 5}, {40, 33}, {20, 30}};
    auto members = RandomMembers<T>(others);
    const auto without = Factored(members);
    members.insert(members.begin() + 2, bad);
    auto with = Factored(members);
    const FactoredMember<T> factor = with[2];
    with.erase(with.begin() + 2);
    for (size_t k = 0; k < with.size(); ++k) {
      EXPECT_TRUE(testing::SameBits(with[k], without[k])) << k;
    }
    return factor;
  }
};

TEST_F(IrrGetrfTest, FactorsMixedShapes) {
  ForTypes([](auto x) { ExpectFactors<decltype(x)>(MixedShapes(IsWatched())); });
}

TEST_F(IrrGetrfTest, FactorsMembersOfEqualShape) {
  ForTypes([](auto x) {
    for (const int64_t n : {1, 4, 32, 70}) {
      ExpectFactors<decltype(x)>(std::vector<MatrixShape>(IsWatched() ? 5 : 40, {n, n}));
    }
  });
}

TEST_F(IrrGetrfTest, AcceptsEmptyBatches) {
  EXPECT_TRUE(Factored<double>({}).empty());
  for (const auto& factor : Factored(RandomMembers<double>({{0, 0}, {5, 0}, {0, 2000}}))) {
    EXPECT_EQ(factor.info, 0);
  }
}

TEST_F(IrrGetrfTest, FactorsOneLargeMemberAmongSmallOnes) {
  std::vector<MatrixShape> shapes(IsWatched() ? 20 : 300, {3, 3});
  shapes[shapes.size() / 2] = {530, IsWatched() ? 150 : 530};
  ForTypes([&](auto x) { ExpectFactors<decltype(x)>(shapes); });
}

// Members that are too large for one block of threads use a grid.
TEST_F(IrrGetrfTest, FactorsLargeMembersWithAGrid) {
  std::vector<MatrixShape> shapes = {{1100, 70}, {1030, 1040}, {60, 1200}, {200, 1025},
                                     {33, 33},   {2100, 40},   {7, 7}};
  if (IsWatched()) shapes = {{1100, 40}, {33, 33}, {60, 1030}, {7, 7}};
  ForTypes([&](auto x) { ExpectFactors<decltype(x)>(shapes); });
}

TEST_F(IrrGetrfTest, AMemberHasTheSameBitsInAnyBatch) {
  ForTypes([](auto x) {
    using T = decltype(x);
    std::vector<MatrixShape> shapes = {{520, 140}, {1100, 100}, {70, 1400}, {1500, 33}};
    if (IsWatched()) {
      shapes = {{3, 4}, {33, 33}, {48, 100}, {1100, 40}};
    } else {
      const std::vector<MatrixShape> mixed = MixedShapes(false);
      shapes.insert(shapes.end(), mixed.begin(), mixed.end());
    }
    const auto members = RandomMembers<T>(shapes);
    const auto together = Factored(members);
    const auto strided = Factored(members, 3);
    for (size_t k = 0; k < members.size(); ++k) {
      SCOPED_TRACE(::testing::Message() << shapes[k].rows << " x " << shapes[k].cols);
      EXPECT_TRUE(testing::SameBits(together[k], strided[k]));
      EXPECT_TRUE(testing::SameBits(together[k], Factored<T>({members[k]})[0]));
    }
  });
}

TEST_F(IrrGetrfTest, FactorsSingularMembersWithoutAffectingOthers) {
  ForTypes([](auto x) {
    using T = decltype(x);
    std::vector<int64_t> orders = {1, 6, 17, 32, 80, 130};
    if (IsWatched()) orders = {6, 40};
    for (const int64_t n : orders) {
      for (const int64_t zero : {int64_t{0}, n / 2, n - 1}) {
        SCOPED_TRACE(::testing::Message() << n << " " << zero);
        Member<T> a = testing::RandomMember<T>(n, n, 9);
        for (int64_t i = 0; i < n; ++i) a(i, zero) = 0;
        const auto factor = FactoredAmongOthers(a);
        EXPECT_EQ(factor.info, zero + 1);
        ExpectGood(a, factor, testing::Factored<T>({a})[0]);
      }
    }
  });
}

// The largest elements, all of them equal, are already on the diagonal.
TEST_F(IrrGetrfTest, DoesNotExchangePivotsOnTheDiagonal) {
  for (const int64_t n : {7, 32, 64, 150}) {
    Member<double> a = testing::RandomMember<double>(n, n, 5);
    for (int64_t i = 0; i < n; ++i) a(i, i) = static_cast<double>(n);
    const auto factor = Factored<double>({a})[0];
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(factor.ipiv[i], i + 1);
    EXPECT_LT(testing::Ratio(a, factor), testing::kThreshold);
  }
}

TEST_F(IrrGetrfTest, ChoosesFirstOfEqualCandidates) {
  for (const int64_t n : {9, 32, 64, 150}) {
    Member<double> a{n, n, std::vector<double>(n * n)};  // every column has ties
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) a(i, j) = i == j ? 1 : i > j ? -1 : 0;
      a(j, n - 1) = 1;
    }
    const auto factor = Factored<double>({a})[0];
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(factor.ipiv[i], i + 1);
  }
}

TEST_F(IrrGetrfTest, DividesByPivotsWithoutAReciprocal) {
  using Limits = std::numeric_limits<double>;
  for (const double pivot : {Limits::denorm_min(), Limits::max()}) {
    for (const int64_t n : {8, 40}) {
      Member<double> a{n, n, std::vector<double>(n * n)};
      for (int64_t i = 0; i < n; ++i) a(i, i) = 1;
      a(2, 2) = pivot;
      a(3, 2) = -pivot;
      a(4, 2) = pivot / 2;
      const auto factor = Factored<double>({a})[0];
      EXPECT_EQ(factor.ipiv[2], 3);
      EXPECT_DOUBLE_EQ(factor.lu(3, 2), -1);
      EXPECT_DOUBLE_EQ(factor.lu(4, 2), pivot / 2 / pivot);
    }
  }
}

TEST_F(IrrGetrfTest, KeepsNanAndInfWithoutAffectingOthers) {
  ForTypes([](auto x) {
    using T = decltype(x);
    using Limits = std::numeric_limits<RealPart<T>>;
    std::vector<int64_t> orders = {1, 6, 40, 130};
    if (IsWatched()) orders = {6, 40};
    for (const int64_t n : orders) {
      for (const RealPart<T> bad : {Limits::quiet_NaN(), Limits::infinity()}) {
        for (const int64_t at : {int64_t{0}, n * n / 2, n * n - 1}) {
          SCOPED_TRACE(::testing::Message() << n << " " << bad << " " << at);
          Member<T> a = testing::RandomMember<T>(n, n, 9);
          a.elements[at] = bad;
          const auto factor = FactoredAmongOthers(a);
          EXPECT_FALSE(std::all_of(factor.lu.elements.begin(), factor.lu.elements.end(),
                                   [](T e) { return IsFinite(e); }));
          EXPECT_EQ(factor.growth, std::numeric_limits<double>::infinity());
          EXPECT_EQ(factor.quality, std::numeric_limits<double>::infinity());
          for (const int64_t pivot : factor.ipiv) {
            EXPECT_GE(pivot, 1);
            EXPECT_LE(pivot, n);
          }
        }
      }
    }
  });
}

// Factors Newton matrices of three mechanisms of combustion chemistry in one batch. Compares the
// pivots with the host's, unless the host's pivots change when each element is perturbed by a few
// roundoffs.
TEST_F(IrrGetrfTest, FactorsSeqPeleAsOneBatch) {
  std::vector<Member<double>> members = testing::SeqPele();
  if (members.empty()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  if (IsWatched()) {  // some of each mechanism
    constexpr size_t kEvery = 20;
    std::vector<Member<double>> few;
    for (size_t k = 0; k < members.size(); k += kEvery) few.push_back(std::move(members[k]));
    members = std::move(few);
  }
  const auto factors = Factored(members);
  const auto of_host = testing::Factored(members);
  std::vector<Member<double>> nearby = members;
  uint64_t state = 1;
  for (Member<double>& member : nearby) {
    for (double& x : member.elements) {
      state = state * 6364136223846793005 + 1442695040888963407;
      x *= 1 + 0x1p-50 * (static_cast<double>(state >> 11) * 0x1p-52 - 1);
    }
  }
  const auto of_nearby = testing::Factored(nearby);
  size_t certain = 0;
  for (size_t k = 0; k < members.size(); ++k) {
    SCOPED_TRACE(k);
    EXPECT_EQ(factors[k].info, 0);
    ExpectFiguresOf(members[k], factors[k]);
    EXPECT_LT(testing::Ratio(members[k], factors[k]), testing::kThreshold);
    if (of_host[k].ipiv != of_nearby[k].ipiv) continue;
    ++certain;
    EXPECT_EQ(factors[k].ipiv, of_host[k].ipiv);
  }
  EXPECT_GT(certain, members.size() / 2);
}

TEST_F(IrrGetrfTest, OrdersMembersByTeamAndSize) {
  std::vector<BatchMember> members(6);
  const MatrixShape shapes[] = {{3, 2}, {40, 1}, {0, 5000}, {1025, 1}, {32, 32}, {33, 600}};
  for (int k = 0; k < 6; ++k) {
    members[k].rows = static_cast<int32_t>(shapes[k].rows);
    members[k].cols = static_cast<int32_t>(shapes[k].cols);
  }
  std::vector<int32_t> order(6);
  const IrrOrder parts = OrderMembers(members, order);
  EXPECT_EQ(order, (std::vector<int32_t>{3, 5, 1, 4, 0, 2}));
  EXPECT_EQ(parts.begin, (std::array<int32_t, 6>{0, 1, 2, 2, 3, 6}));
}

}  // namespace
}  // namespace crout::cuda::irr_getrf_test
