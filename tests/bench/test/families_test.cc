// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/families.h"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "tests/bench/crout_bench/mean_curvature.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/status_matchers.h"

namespace crout::bench::families_test {
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

TEST(FamiliesTest, GivesTheSameBitsForTheSameArguments) {
  for (const std::string_view family : FamilyNames()) {
    ASSERT_OK_AND_ASSIGN(const auto first, Generate(family, 5));
    ASSERT_OK_AND_ASSIGN(const auto second, Generate(family, 5));
    EXPECT_EQ(first, second) << family;
    ASSERT_OK_AND_ASSIGN(const int64_t n, OrderOf(family, 5));
    EXPECT_EQ(static_cast<int64_t>(first.size()), n * n) << family;
    ASSERT_OK_AND_ASSIGN(const auto other, Generate(family, 6));
    EXPECT_NE(first.size(), other.size()) << family;
  }
}

TEST(FamiliesTest, EyvazovsEntriesFillTheirRange) {
  ASSERT_OK_AND_ASSIGN(const auto a, Generate("eyvazov", 100));
  EXPECT_THAT(a, Each(::testing::AllOf(Ge(1), Lt(1000))));
  EXPECT_LT(*std::min_element(a.begin(), a.end()), 2);
  EXPECT_GT(*std::max_element(a.begin(), a.end()), 999);
}

TEST(FamiliesTest, ArrowHasADiagonalALastRowAndALastColumn) {
  const int64_t n = 40;
  ASSERT_OK_AND_ASSIGN(const auto a, Generate("arrow", n));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(a[i + j * n] != 0, i == j || i == n - 1 || j == n - 1) << i << ", " << j;
    }
  }
}

// The thesis has these orders in section 2.3 and table 3.2.
TEST(FamiliesTest, SubdomainsHaveThePublishedOrders) {
  for (const auto& [family, size, order] : {std::tuple{"bddc", 4, 74},
                                            {"bddc", 20, 1274},
                                            {"bddc", 24, 1814},
                                            {"bddc", 28, 2450},
                                            {"bddc", 32, 3182},
                                            {"bddc_corner", 5, 104},
                                            {"bddc_corner", 8, 230},
                                            {"bddc_corner", 25, 1964},
                                            {"bddc_corner", 50, 7664},
                                            {"bddc_edge", 8, 298},
                                            {"bddc_interior", 5, 178},
                                            {"bddc_interior", 8, 412},
                                            {"bddc_interior", 50, 15028}}) {
    ASSERT_OK_AND_ASSIGN(const int64_t n, OrderOf(family, size));
    EXPECT_EQ(n, order) << family << " " << size;
  }
  // [S C^T; C 0] is symmetric and has a zero block.
  ASSERT_OK_AND_ASSIGN(const auto a, Generate("bddc_face", 3));
  ASSERT_OK_AND_ASSIGN(const int64_t n, OrderOf("bddc_face", 3));
  const int64_t shared = n - 21;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < j; ++i) EXPECT_NEAR(a[i + j * n], a[j + i * n], 1e-15);
    if (j >= shared) {
      EXPECT_EQ(a[j + j * n], 0);
    }
  }
}

// The condition numbers, in the 2-norm, were published with the matrices of the thesis.
TEST(FamiliesTest, SubdomainsHaveThePublishedConditions) {
  for (const auto& [family, size, condition] : {std::tuple{"bddc_corner", 8, 648.256873435847},
                                                {"bddc_edge", 8, 703.856457466153},
                                                {"bddc", 20, 5332.14071435653}}) {
    SCOPED_TRACE(family);
    ASSERT_OK_AND_ASSIGN(std::vector<double> a, Generate(family, size));
    ASSERT_OK_AND_ASSIGN(const int64_t n, OrderOf(family, size));
    const auto order = static_cast<lapack_int>(n);
    std::vector<double> values(n);  // eigenvalues; the matrices are symmetric
    ASSERT_EQ(LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'L', order, a.data(), order, values.data()), 0);
    for (double& value : values) value = std::abs(value);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    EXPECT_NEAR(*most / *least, condition, 1e-10 * condition);
  }
}

// The published program generated the shared matrices.
TEST(FamiliesTest, SubdomainsEqualTheSharedMatrices) {
  if (!testing::MatricesDirectory()) GTEST_SKIP() << "no shared matrices: set CROUT_MATRICES";
  struct Pair {
    const char* file;
    const char* family;
    int64_t size;
  };
  for (const Pair& pair : {Pair{"poc/poc-4_2_2.mtx.gz", "bddc", 4},
                           {"poc/poc-8_4_2_corner.mtx.gz", "bddc_corner", 8},
                           {"poc/poc-8_4_2_edge.mtx.gz", "bddc_edge", 8},
                           {"poc/poc-8_4_2_interior.mtx.gz", "bddc_interior", 8}}) {
    SCOPED_TRACE(pair.file);
    ASSERT_OK_AND_ASSIGN(const auto made, Generate(pair.family, pair.size));
    bool found = false;
    for (const testing::RealMatrix& real : testing::RealMatrixIndex()) {
      if (real.file != pair.file) continue;
      found = true;
      ASSERT_OK_AND_ASSIGN(const auto shared, testing::ReadRealMatrix(real));
      ASSERT_EQ(shared.size(), made.size());
      for (size_t i = 0; i < made.size(); ++i) ASSERT_NEAR(made[i], shared[i], 1e-16) << i;
    }
    EXPECT_TRUE(found);
  }
}

TEST(FamiliesTest, MeanCurvatureFlowIsDominantAndItsStepsSolveIt) {
  const int64_t grid = 12;
  MeanCurvatureFlow flow(grid);
  const int64_t n = flow.n();
  double before = 0;
  for (int step = 1; step <= 4; ++step) {
    EXPECT_EQ(flow.step(), step);
    const std::vector<double> a = flow.Matrix();
    const std::vector<double> u = flow.u();
    for (int64_t i = 0; i < n; ++i) EXPECT_GT(std::abs(a[i * (n + 1)]), RowSum(a, n, i));
    // The first step uses no gradients, like the heat equation, so the diagonal is 1 + 4 * 0.1.
    const int64_t centre = grid / 2 * (grid + 1);
    EXPECT_EQ(std::abs(a[centre * (n + 1)] - 1.4) < 1e-15, step == 1);
    flow.Advance();
    double area = 0;
    for (int64_t i = 0; i < n; ++i) {
      double product = 0;
      for (int64_t j = 0; j < n; ++j) product += a[i + j * n] * flow.u()[j];
      EXPECT_NEAR(product, u[i], 1e-14);
      area += flow.u()[i] * flow.u()[i];
    }
    if (step > 1) {
      EXPECT_LT(area, before);
    }
    before = area;
  }
  ASSERT_OK_AND_ASSIGN(const auto second, Generate("mcf", grid));
  MeanCurvatureFlow again(grid);
  again.Advance();
  EXPECT_EQ(second, again.Matrix());
}

// Kept results are comparable only if the matrices do not change.
TEST(FamiliesTest, ThesisFamilyHasFixedEntries) {
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
  // The tolerance is five standard deviations of the binomial distribution.
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

TEST(FamiliesTest, ComplexMatrixHasItsTransposeAsImaginaryPart) {
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

TEST(FamiliesTest, RefusesUnknownFamiliesAndOrders) {
  EXPECT_THAT(Generate("thesiss", 3),
              FailsWith(absl::StatusCode::kInvalidArgument, "thesis, dominant, random"));
  EXPECT_THAT(Generate("thesis", 0), FailsWith(absl::StatusCode::kInvalidArgument, "order 0"));
  EXPECT_THAT(Generate("mcf", 2), FailsWith(absl::StatusCode::kInvalidArgument, "begins with 3"));
  EXPECT_THAT(OrderOf("bddc", 1), FailsWith(absl::StatusCode::kInvalidArgument, "begins with 2"));
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
}  // namespace crout::bench::families_test
