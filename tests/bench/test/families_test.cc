#include "tests/bench/crout_bench/families.h"

#include <algorithm>
#include <cmath>

#include "tests/support/status_matchers.h"

namespace crout::bench {
namespace {

using ::crout::testing::FailsWith;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Lt;

double RowSum(const std::vector<double>& a, int64_t n, int64_t i) {
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += j == i ? 0 : std::abs(a[i + j * n]);
  return sum;
}

double ColumnSum(const std::vector<double>& a, int64_t n, int64_t j) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += i == j ? 0 : std::abs(a[i + j * n]);
  return sum;
}

TEST(FamiliesTest, TheSameCallGivesTheSameBits) {
  for (const std::string_view family : FamilyNames()) {
    ASSERT_OK_AND_ASSIGN(const auto first, Generate(family, 20));
    ASSERT_OK_AND_ASSIGN(const auto second, Generate(family, 20));
    EXPECT_EQ(first, second) << family;
    ASSERT_OK_AND_ASSIGN(const auto other, Generate(family, 21));
    EXPECT_NE(first[0], other[0]) << family;
  }
}

// Results that are kept compare only with the same matrices.
TEST(FamiliesTest, TheThesisFamilyStaysAsItIs) {
  ASSERT_OK_AND_ASSIGN(const auto a, Generate("thesis", 3));
  EXPECT_DOUBLE_EQ(a[1], -608.47249047767639);
  EXPECT_DOUBLE_EQ(a[8], 409.44992437746475);
}

TEST(FamiliesTest, ThesisMatricesFillTheirRangeAndHaveHalfOfTheDiagonalZero) {
  const int64_t n = 558;
  ASSERT_OK_AND_ASSIGN(const auto a, Generate("thesis", n));
  EXPECT_THAT(a, Each(::testing::AllOf(Ge(-1000), Lt(1000))));
  EXPECT_LT(*std::min_element(a.begin(), a.end()), -999);
  EXPECT_GT(*std::max_element(a.begin(), a.end()), 999);
  int64_t zeros = 0;
  for (int64_t i = 0; i < n; ++i) zeros += a[i * (n + 1)] == 0 ? 1 : 0;
  // Five standard deviations of a binomial distribution.
  EXPECT_NEAR(static_cast<double>(zeros), n / 2.0, 5 * std::sqrt(n / 4.0));
  EXPECT_EQ(std::count(a.begin(), a.end(), 0.0), zeros) << "zeros off the diagonal";
  EXPECT_NE(a[n * n - 1], 0) << "the last of the diagonal";
}

TEST(FamiliesTest, DominantMatricesAreDominantByRowsAndColumns) {
  const int64_t n = 65;
  ASSERT_OK_AND_ASSIGN(const auto a, Generate("dominant", n));
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_GT(std::abs(a[i * (n + 1)]), RowSum(a, n, i));
    EXPECT_GT(std::abs(a[i * (n + 1)]), ColumnSum(a, n, i));
  }
}

TEST(FamiliesTest, AComplexMatrixHasItsTransposeForImaginaryParts) {
  const int64_t n = 7;
  ASSERT_OK_AND_ASSIGN(const auto a, Generate("thesis", n));
  ASSERT_OK_AND_ASSIGN(const auto parts, Generate("thesis", n, true));
  ASSERT_EQ(parts.size(), 2 * a.size());
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(parts[2 * (i + j * n)], a[i + j * n]);
      EXPECT_EQ(parts[2 * (i + j * n) + 1], a[j + i * n]);
    }
  }
}

TEST(FamiliesTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Generate("thesiss", 3),
              FailsWith(absl::StatusCode::kInvalidArgument, "thesis, dominant, random"));
  EXPECT_THAT(Generate("thesis", 0), FailsWith(absl::StatusCode::kInvalidArgument, "order 0"));
}

TEST(FamiliesTest, PerturbationStaysWithinItsBoundAndKeepsZeros) {
  ASSERT_OK_AND_ASSIGN(const auto before, Generate("thesis", 40));
  std::vector<double> after = before;
  Perturb(1e-3, 1, after);
  double most = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == 0) {
      EXPECT_EQ(after[i], 0);
    } else {
      most = std::max(most, std::abs(after[i] / before[i] - 1));
    }
  }
  EXPECT_LE(most, 1.0001e-3);
  EXPECT_GT(most, 0.9e-3);
}

}  // namespace
}  // namespace crout::bench
