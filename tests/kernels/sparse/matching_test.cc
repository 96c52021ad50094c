// SPDX-License-Identifier: Apache-2.0

// Tests the matching with the largest product: for small matrices against every permutation, for
// larger ones by the properties of the scaled matrix.
#include "kernels/sparse/matching.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::matching_test {
namespace {

constexpr auto kNeverStop = [] { return false; };

// Returns the largest sum of log |a(i, p(i))|, or -Inf if every permutation contains a zero.
double LargestLogProduct(const ComplexMatrix& a, int64_t n) {
  std::vector<int64_t> p(n);
  std::iota(p.begin(), p.end(), 0);
  double largest = -std::numeric_limits<double>::infinity();
  do {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::log(std::abs(a[i + p[i] * n]));
    largest = std::max(largest, sum);
  } while (std::next_permutation(p.begin(), p.end()));
  return largest;
}

// A matrix with about `density` * n^2 entries of modulus 1e-3 to 1e3.
ComplexMatrix Scattered(int64_t n, double density, uint64_t seed, DType dtype) {
  const HostMatrix chance = RandomMatrix(n, n, seed);
  const HostMatrix size = RandomMatrix(n, n, seed + 1);
  const HostMatrix phase = RandomMatrix(n, n, seed + 2);
  ComplexMatrix a(n * n);
  for (int64_t e = 0; e < n * n; ++e) {
    if (std::abs(chance[e]) > density) continue;
    const double modulus = std::pow(10.0, 3 * size[e]);
    a[e] = IsComplex(dtype) ? std::polar(modulus, 3 * phase[e]) : std::copysign(modulus, phase[e]);
  }
  return Rounded(a, dtype);
}

// Expects that the scaled and permuted matrix has moduli of 1 on the diagonal and of at most 1
// elsewhere. Returns the logarithm of the product of the matched moduli in A.
double CheckScaled(const ComplexMatrix& a, int64_t n, const Matching& matching) {
  double product = 0;
  std::vector<bool> taken(n);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t match = matching.column_of_row[i];
    EXPECT_FALSE(taken[match]);
    taken[match] = true;
    for (int64_t j = 0; j < n; ++j) {
      const double scaled =
          std::abs(a[i + j * n]) * matching.row_scale[i] * matching.column_scale[j];
      EXPECT_LE(scaled, 1 + 1e-12);
      if (j == match) {
        EXPECT_NEAR(scaled, 1, 1e-12);
      }
    }
    product += std::log(std::abs(a[i + match * n]));
  }
  return product;
}

class MatchingTest : public ::testing::TestWithParam<DType> {};

TEST_P(MatchingTest, FindsLargestProductOfAllPermutations) {
  int singular = 0;
  for (int64_t n = 1; n <= 7; ++n) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(::testing::Message() << "n " << n << " seed " << seed);
      const ComplexMatrix a = Scattered(n, seed % 2 == 0 ? 0.5 : 0.9, 10 * seed, GetParam());
      const double largest = LargestLogProduct(a, n);
      const PackedSparse packed = PackSparse(a, n, GetParam());
      ASSERT_OK_AND_ASSIGN(const Matching matching,
                           MaximumProductMatching(packed.view(), kNeverStop));
      if (std::isinf(largest)) {
        ++singular;
        ASSERT_GE(matching.unmatched_row, 0);
        EXPECT_EQ(matching.column_of_row[matching.unmatched_row], -1);
        EXPECT_TRUE(matching.row_scale.empty());
        continue;
      }
      ASSERT_EQ(matching.unmatched_row, -1);
      EXPECT_NEAR(CheckScaled(a, n, matching), largest, 1e-9 * n);
    }
  }
  EXPECT_GT(singular, 5);
  EXPECT_LT(singular, 200);
}

TEST_P(MatchingTest, FindsLargestProductForOrderEight) {
  const ComplexMatrix a = Scattered(8, 0.6, 5, GetParam());
  const PackedSparse packed = PackSparse(a, 8, GetParam());
  ASSERT_OK_AND_ASSIGN(const Matching matching, MaximumProductMatching(packed.view(), kNeverStop));
  ASSERT_EQ(matching.unmatched_row, -1);
  EXPECT_NEAR(CheckScaled(a, 8, matching), LargestLogProduct(a, 8), 1e-9);
}

// Tries no permutations: the scales are dual variables, which prove that the product is the
// largest.
TEST_P(MatchingTest, ScalesLargeMatrices) {
  constexpr int64_t kN = 300;
  for (const double density : {0.02, 0.05, 0.5, 1.0}) {
    ComplexMatrix a = Scattered(kN, density, 77, GetParam());
    for (int64_t i = 0; i < kN; ++i)
      a[i + (i * 7 + 3) % kN * kN] = 0.0078125;  // ensures a perfect matching
    const PackedSparse packed = PackSparse(a, kN, GetParam());
    ASSERT_OK_AND_ASSIGN(const Matching matching,
                         MaximumProductMatching(packed.view(), kNeverStop));
    ASSERT_EQ(matching.unmatched_row, -1);
    CheckScaled(a, kN, matching);
  }
}

TEST_F(MatchingTest, ReportsRowWithoutColumn) {
  // Rows 1, 4 and 5 share two columns.
  std::vector<SparseEntry> entries;
  for (int32_t i = 0; i < 8; ++i) {
    const bool crowded = i == 1 || i == 4 || i == 5;
    for (int32_t j = 0; j < 8; ++j) {
      if (!crowded || j == 2 || j == 6) entries.push_back({i, j, 1.0 + i + 2 * j});
    }
  }
  ASSERT_OK_AND_ASSIGN(
      const Matching matching,
      MaximumProductMatching(PackEntries(entries, 8, DType::kFloat64).view(), kNeverStop));
  EXPECT_TRUE(matching.unmatched_row == 1 || matching.unmatched_row == 4 ||
              matching.unmatched_row == 5);
  EXPECT_EQ(std::count(matching.column_of_row.begin(), matching.column_of_row.end(), -1), 1);
}

TEST_F(MatchingTest, IgnoresStoredZeros) {
  ASSERT_OK_AND_ASSIGN(
      const Matching matching,
      MaximumProductMatching(
          PackEntries({{0, 0, 0.0}, {1, 1, 0.0}, {0, 1, 2.0}, {1, 0, 3.0}}, 2, DType::kFloat64)
              .view(),
          kNeverStop));
  EXPECT_EQ(matching.column_of_row, (std::vector<int32_t>{1, 0}));
}

TEST_F(MatchingTest, KeepsOptimalDiagonal) {
  const PackedSparse a = PackEntries(GridEntries(20, 2), 400, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Matching matching, MaximumProductMatching(a.view(), kNeverStop));
  for (int32_t i = 0; i < 400; ++i) EXPECT_EQ(matching.column_of_row[i], i);
}

TEST_F(MatchingTest, RefusesNonFiniteValues) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const PackedSparse a = PackEntries({{0, 0, 1.0}, {1, 1, bad}}, 2, DType::kFloat64);
    EXPECT_THAT(MaximumProductMatching(a.view(), kNeverStop),
                FailsWith(absl::StatusCode::kInvalidArgument, "entry (1, 1)"));
  }
}

TEST_F(MatchingTest, HandlesEntriesNearTheEndsOfTheRange) {
  ASSERT_OK_AND_ASSIGN(
      const Matching matching,
      MaximumProductMatching(PackEntries({{0, 0, 1e-300}, {0, 1, 1e300}, {1, 0, 5e-324}, {1, 1, 1}},
                                         2, DType::kFloat64)
                                 .view(),
                             kNeverStop));
  for (const auto* scales : {&matching.row_scale, &matching.column_scale}) {
    for (const double scale : *scales) {
      EXPECT_TRUE(std::isfinite(scale));
      EXPECT_GT(scale, 0);
    }
  }
}

TEST_F(MatchingTest, StopsAtFirstPoll) {
  const PackedSparse a = PackEntries(GridEntries(5, 2), 25, DType::kFloat64);
  EXPECT_THAT(MaximumProductMatching(a.view(), [] { return true; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
}

// All columns have entries in the same rows, half as many as columns. A search for a row of one of
// the last columns therefore visits all kHalf^2 entries of the matched columns.
TEST_F(MatchingTest, StopsBetweenExchanges) {
  constexpr int32_t kHalf = 700;
  std::vector<SparseEntry> entries;
  for (int32_t j = 0; j < 2 * kHalf; ++j) {
    for (int32_t i = 0; i < kHalf; ++i) entries.push_back({i, j, 1.0});
  }
  const PackedSparse a = PackEntries(entries, 2 * kHalf, DType::kFloat64);
  int polls = 0;  // the first poll precedes the assignment
  EXPECT_THAT(MaximumProductMatching(a.view(), [&] { return ++polls == 2; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_EQ(polls, 2);
}

INSTANTIATE_TEST_SUITE_P(Types, MatchingTest, ::testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace crout::testing::matching_test
