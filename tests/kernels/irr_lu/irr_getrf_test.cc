// SPDX-License-Identifier: Apache-2.0

// Tests irr_lu's factorization on the host: each member has LAPACK's pivots and an accurate factor,
// whatever the other members are.
#include "kernels/host/irr_lu/irr_lu.h"

#include <atomic>
#include <cmath>
#include <complex>
#include <limits>

#include "kernels/host/ops/lapack.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/util/sanitizers.h"
#include "tests/kernels/irregular_batch_testing.h"
#include "tests/support/ratios.h"

namespace crout::testing::irr_getrf_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Computes the quality by the definition of the probe.
template <class T>
double QualityByDefinition(const Member<T>& a, const FactoredMember<T>& factor) {
  const auto error = Error(a, factor);
  long double probe = 0;
  for (int64_t j = 0; j < a.cols; ++j) {
    Long<T> sum = 0;
    for (int64_t i = 0; i < a.rows; ++i) {
      sum += error[i + j * a.rows] * static_cast<long double>(ProbeWeight(i));
    }
    probe = std::max(probe, std::abs(sum));
  }
  return FactorQuality(static_cast<double>(probe), {std::max(a.rows, a.cols), 1, nullptr},
                       LargestColumnSum(a.elements, a.rows, a.cols), kDTypeOf<T>);
}

template <class T>
double GrowthByDefinition(const Member<T>& a, const FactoredMember<T>& factor) {
  double of_u = 0;
  double of_a = 0;
  for (int64_t j = 0; j < a.cols; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) {
      of_a = std::max(of_a, Modulus(a(i, j)));
      if (i <= j) of_u = std::max(of_u, Modulus(factor.lu(i, j)));
    }
  }
  return of_a == 0 ? 1 : of_u / of_a;
}

// Expects LAPACK's pivots and info. The matrix must not contain NaN.
template <class T>
void ExpectLapacksPivots(const Member<T>& a, const FactoredMember<T>& factor) {
  Member<T> lu = a;
  std::vector<lapack_int> pivots(factor.diagonal());
  const MatrixView<T> view{lu.elements.data(), a.rows, a.cols, std::max<int64_t>(1, a.rows)};
  lapack_int info = -1;
  host::Executor(1).Run(host::Width::kOneCore,
                        [&](int) { info = host::Getrf(view, pivots.data()); });
  EXPECT_EQ(factor.info, info);
  EXPECT_EQ(factor.ipiv, std::vector<int64_t>(pivots.begin(), pivots.end()));
}

template <class T>
void ExpectGood(const Member<T>& a, const FactoredMember<T>& factor) {
  SCOPED_TRACE(::testing::Message() << a.rows << " x " << a.cols);
  EXPECT_LT(Ratio(a, factor), kThreshold);
  EXPECT_LT(factor.quality, kThreshold);
  if (a.elements.empty()) {
    EXPECT_EQ(factor.growth, 1);
    EXPECT_EQ(factor.quality, 0);
    return;
  }
  const double growth = GrowthByDefinition(a, factor);
  EXPECT_NEAR(factor.growth, growth, 1e-15 * growth);
  if (RealOf(kDTypeOf<T>) == DType::kFloat32) {  // the probe's own rounding errors are negligible
    const double quality = QualityByDefinition(a, factor);
    EXPECT_NEAR(factor.quality, quality, 1e-5 * quality + 1e-7);
  }
}

template <class T>
void ExpectGoodAsLapacks(const std::vector<Member<T>>& members) {
  const std::vector<FactoredMember<T>> factors = Factored(members);
  for (size_t k = 0; k < members.size(); ++k) {
    SCOPED_TRACE(k);
    ExpectGood(members[k], factors[k]);
    if (!members[k].elements.empty()) ExpectLapacksPivots(members[k], factors[k]);
    EXPECT_TRUE(members[k].elements.empty() || factors[k].info == 0);
  }
}

// Empty, square, tall and wide shapes, with orders near the panel sizes of the small kernel and
// near its largest order.
std::vector<MatrixShape> MixedShapes() {
  std::vector<MatrixShape> shapes = {{0, 0},  {1, 1},   {0, 4},   {64, 64}, {65, 65}, {1, 20},
                                     {20, 1}, {3, 0},   {63, 66}, {66, 63}, {8, 8},   {9, 9},
                                     {7, 40}, {40, 7},  {4, 4},   {5, 3},   {3, 5},   {12, 12},
                                     {2, 2},  {90, 33}, {33, 90}, {31, 31}, {64, 5},  {5, 64}};
  uint64_t state = 1;
  for (int k = 0; k < 60; ++k) {
    state = state * 6364136223846793005 + 1442695040888963407;
    shapes.push_back(
        {static_cast<int64_t>((state >> 33) % 70), static_cast<int64_t>((state >> 45) % 70)});
  }
  return shapes;
}

template <class T>
std::vector<Member<T>> RandomMembers(const std::vector<MatrixShape>& shapes) {
  std::vector<Member<T>> members;
  for (const MatrixShape& shape : shapes) {
    members.push_back(RandomMember<T>(shape.rows, shape.cols, members.size() + 1));
  }
  return members;
}

template <class T>
class IrrGetrfTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(IrrGetrfTest, Types);

TYPED_TEST(IrrGetrfTest, MatchesHandComputedFactors) {
  // The rows are exchanged: [1 3; 2 4] = P [1 0; 1/2 1] [2 4; 0 1].
  const auto factors = Factored<TypeParam>({{2, 2, {1, 2, 3, 4}}, {1, 1, {-4}}});
  EXPECT_EQ(factors[0].lu.elements, (std::vector<TypeParam>{2, 0.5, 4, 1}));
  EXPECT_EQ(factors[0].ipiv, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(factors[0].info, 0);
  EXPECT_EQ(factors[0].growth, 1);
  EXPECT_EQ(factors[0].quality, 0);
  EXPECT_EQ(factors[1].lu.elements, std::vector<TypeParam>{-4});
  EXPECT_EQ(factors[1].ipiv, std::vector<int64_t>{1});
}

TYPED_TEST(IrrGetrfTest, FactorsMixedShapes) {
  ExpectGoodAsLapacks(RandomMembers<TypeParam>(MixedShapes()));
}

TYPED_TEST(IrrGetrfTest, FactorsMembersOfEqualShape) {
  for (const int64_t n : {1, 2, 4, 17, 70}) {
    ExpectGoodAsLapacks(RandomMembers<TypeParam>(std::vector<MatrixShape>(40, {n, n})));
  }
}

TYPED_TEST(IrrGetrfTest, AcceptsEmptyBatches) {
  EXPECT_TRUE(Factored<TypeParam>({}).empty());
  for (const auto& factor : Factored(RandomMembers<TypeParam>({{0, 0}, {5, 0}, {0, 5}}))) {
    EXPECT_EQ(factor.info, 0);
    EXPECT_EQ(factor.growth, 1);
    EXPECT_EQ(factor.quality, 0);
  }
}

TYPED_TEST(IrrGetrfTest, FactorsOneLargeMemberAmongSmallOnes) {
  std::vector<MatrixShape> shapes(300, {3, 3});
  const int64_t n = kSanitized ? 200 : 1030;  // uses all cores
  shapes[150] = {n, n};
  const auto members = RandomMembers<TypeParam>(shapes);
  const auto factors = Factored(members);
  ExpectLapacksPivots(members[150], factors[150]);
  EXPECT_LT(factors[150].quality, 1);
  for (const size_t k : {0, 149, 151, 299}) ExpectGood(members[k], factors[k]);
}

TYPED_TEST(IrrGetrfTest, AMemberHasTheSameBitsInAnyBatch) {
  std::vector<MatrixShape> shapes = MixedShapes();
  if (!kSanitized) shapes.insert(shapes.end(), 300, {64, 60});  // enough for several threads
  const auto members = RandomMembers<TypeParam>(shapes);
  const auto together = Factored(members, 3);
  const auto by_one = Factored(members, 1);
  const auto strided = Factored(members, 2, 16);
  for (size_t k = 0; k < members.size(); ++k) {
    SCOPED_TRACE(::testing::Message() << k << ": " << shapes[k].rows << " x " << shapes[k].cols);
    EXPECT_TRUE(SameBits(together[k], by_one[k]));
    EXPECT_TRUE(SameBits(together[k], strided[k]));
    if (k >= 100) continue;
    EXPECT_TRUE(SameBits(together[k], Factored<TypeParam>({members[k]})[0]));
  }
}

// Factors `bad` in a batch and returns its factor. Expects that the factors of the other members
// have the same bits as without it.
template <class T>
FactoredMember<T> FactoredAmongOthers(const Member<T>& bad) {
  auto members = RandomMembers<T>({{5, 5}, {70, 70}, {20, 30}, {64, 64}});
  const auto without = Factored(members);
  members.insert(members.begin() + 2, bad);
  auto with = Factored(members);
  const FactoredMember<T> factor = with[2];
  with.erase(with.begin() + 2);
  for (size_t k = 0; k < with.size(); ++k) EXPECT_TRUE(SameBits(with[k], without[k])) << k;
  return factor;
}

TYPED_TEST(IrrGetrfTest, FactorsSingularMembersWithoutAffectingOthers) {
  for (const int64_t n : {1, 2, 6, 17, 64, 80}) {
    for (const int64_t zero : {int64_t{0}, n / 2, n - 1}) {
      SCOPED_TRACE(::testing::Message() << n << " " << zero);
      Member<TypeParam> a = RandomMember<TypeParam>(n, n, 9);
      for (int64_t i = 0; i < n; ++i) a(i, zero) = 0;
      const auto factor = FactoredAmongOthers(a);
      EXPECT_EQ(factor.info, zero + 1);
      ExpectGood(a, factor);
      ExpectLapacksPivots(a, factor);
    }
    const Member<TypeParam> nothing{n, n, std::vector<TypeParam>(n * n)};
    const auto factor = FactoredAmongOthers(nothing);
    EXPECT_EQ(factor.info, 1);
    EXPECT_EQ(factor.growth, 1);
    EXPECT_EQ(factor.quality, 0);
  }
}

TYPED_TEST(IrrGetrfTest, ReportsNanAndInfWithoutAffectingOthers) {
  for (const int64_t n : {1, 6, 40, 70}) {
    for (const double bad : {kNan, kInfinity}) {
      for (const int64_t at : {int64_t{0}, n * n / 2, n * n - 1}) {
        SCOPED_TRACE(::testing::Message() << n << " " << bad << " " << at);
        Member<TypeParam> a = RandomMember<TypeParam>(n, n, 9);
        a.elements[at] = static_cast<RealPart<TypeParam>>(bad);
        const auto factor = FactoredAmongOthers(a);
        EXPECT_EQ(factor.growth, kInfinity);
        EXPECT_EQ(factor.quality, kInfinity);
        for (const int64_t pivot : factor.ipiv) {
          EXPECT_GE(pivot, 1);
          EXPECT_LE(pivot, n);
        }
      }
    }
  }
}

TYPED_TEST(IrrGetrfTest, DoesNotExchangePivotsOnTheDiagonal) {
  std::vector<Member<TypeParam>> members;
  for (const int64_t n : {1, 7, 30, 64, 90}) {
    members.push_back(RandomMember<TypeParam>(n, n, n));
    for (int64_t i = 0; i < n; ++i) members.back()(i, i) += static_cast<RealPart<TypeParam>>(3 * n);
  }
  const auto factors = Factored(members);
  for (size_t k = 0; k < members.size(); ++k) {
    ExpectGood(members[k], factors[k]);
    for (int64_t i = 0; i < factors[k].diagonal(); ++i) EXPECT_EQ(factors[k].ipiv[i], i + 1);
  }
}

TYPED_TEST(IrrGetrfTest, ChoosesFirstOfEqualCandidates) {
  // All elements of the first column have the same modulus.
  for (const int64_t n : {3, 8, 50}) {
    Member<TypeParam> a = RandomMember<TypeParam>(n, n, 5);
    for (int64_t i = 0; i < n; ++i) a(i, 0) = i % 2 == 0 ? -2 : 2;
    const auto factor = Factored<TypeParam>({a})[0];
    EXPECT_EQ(factor.ipiv[0], 1);
    ExpectGood(a, factor);
  }
}

TYPED_TEST(IrrGetrfTest, DividesBySmallPivotsWithoutOverflow) {
  using Part = RealPart<TypeParam>;
  for (const Part size : {std::numeric_limits<Part>::denorm_min() * 1024,
                          std::numeric_limits<Part>::min(), std::numeric_limits<Part>::max() / 8}) {
    // The pivot is `size`. Its reciprocal must not be used because it overflows or is subnormal.
    const Member<TypeParam> a{3, 2, {size, size / 2, -size / 4, size, size, 0}};
    const auto factor = Factored<TypeParam>({a})[0];
    EXPECT_EQ(factor.lu(1, 0), TypeParam(Part{0.5}));
    EXPECT_EQ(factor.lu(2, 0), TypeParam(Part{-0.25}));
    EXPECT_TRUE(std::isfinite(factor.quality));
  }
}

TYPED_TEST(IrrGetrfTest, StopsBetweenMembers) {
  host::Executor executor(1);
  HostBatch<TypeParam> batch(RandomMembers<TypeParam>(std::vector<MatrixShape>(50, {40, 40})));
  HostBatchFactors factors(batch.extent());
  int polls = 0;
  EXPECT_THAT(RunGetrf(executor, batch, factors, [&] { return ++polls == 3; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_EQ(polls, 3);
  EXPECT_EQ(factors.info.front(), 0) << "nothing was done";
  EXPECT_EQ(factors.info.back(), -1) << "and nothing left undone";
}

TEST(IrrGetrfThreadsTest, StopsAllThreads) {
  host::Executor executor(3);
  HostBatch<double> batch(RandomMembers<double>(std::vector<MatrixShape>(400, {60, 60})));
  HostBatchFactors factors(batch.extent());
  std::atomic<int> polls = 0;
  EXPECT_THAT(RunGetrf(executor, batch, factors, [&] { return ++polls > 5; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_EQ(std::count(factors.info.begin(), factors.info.end(), -1) > 0, true);
}

TEST(IrrGetrfThreadsTest, FactorsAHundredThousandMembers) {
  std::vector<MatrixShape> shapes(100'000);
  for (int64_t k = 0; k < std::ssize(shapes); ++k) shapes[k] = {k % 7, k % 5};
  const auto members = RandomMembers<float>(shapes);
  const auto factors = Factored(members);
  for (size_t k = 0; k < shapes.size(); ++k) {
    ASSERT_EQ(factors[k].info, 0) << k;
    ASSERT_LT(factors[k].quality, kThreshold) << k;
  }
}

TEST(IrrGetrfRealMatricesTest, FactorsSeqPeleAsOneBatch) {
  const std::vector<Member<double>> members = SeqPele();
  if (members.empty()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  const auto factors = Factored(members);
  for (size_t k = 0; k < members.size(); ++k) {
    SCOPED_TRACE(k);
    EXPECT_EQ(factors[k].info, 0);
    ExpectGood(members[k], factors[k]);
    ExpectLapacksPivots(members[k], factors[k]);
  }
}

}  // namespace
}  // namespace crout::testing::irr_getrf_test
