// SPDX-License-Identifier: Apache-2.0

// Tests the device code of the reduced row echelon form on host threads.
#include "kernels/cuda/gauss_jordan/echelon_panel.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tests/support/matrices/gallery.h"

namespace crout::cuda::echelon_emulation_test {
namespace {

constexpr int kThreads = 64;

template <class T>
struct Reduced {
  std::vector<T> r;
  std::vector<int64_t> pivot_columns;
  EchelonState state;
};

unsigned BlocksFor(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

// Runs the kernels in the order of echelon_form.cc. `stop` is the constant value of the stop flag.
template <class T>
Reduced<T> Reduce(std::vector<T> a, int64_t rows, int64_t cols, int64_t eligible, double tolerance,
                  uint32_t stop = 0, bool follows_growth = false) {
  std::vector<T> pivot_row(2 * kEchelonPanel);
  std::vector<T> pivot_transforms(kEchelonPanel * kEchelonPanel);
  std::vector<T> moved(kEchelonPanel * cols);
  std::vector<int64_t> pivots(std::min(rows, cols), -1);
  EchelonState state = {};
  EchelonPanel<T> panel;
  panel.a = {a.data(), rows, cols, rows};
  panel.eligible = eligible;
  panel.tolerance = tolerance;
  panel.follows_growth = follows_growth;
  panel.pivot_row = pivot_row.data();
  panel.pivot_transforms = pivot_transforms.data();
  panel.rows = moved.data();
  panel.pivot_columns = pivots.data();
  panel.state = &state;
  panel.host.stop = &stop;
  for (panel.begin = 0; panel.begin < eligible; panel.begin = panel.end) {
    panel.end = std::min(panel.begin + kEchelonPanel, eligible);
    std::vector<T> transform(rows * kEchelonPanel, T{0});
    panel.transform = transform.data();
    for (int64_t j = panel.begin; j < panel.end; ++j) {
      RunEmulatedGrid(1, kThreads, [&] { SearchPivot<kThreads>(panel, j); });
      RunEmulatedGrid(BlocksFor(rows), kThreads, [&] { EliminateColumn<kThreads>(panel, j); });
    }
    if (panel.end == cols) continue;
    RunEmulatedGrid(BlocksFor(cols - panel.end), kThreads,
                    [&] { ExtractPivotRows<kThreads>(panel); });
    for (int64_t j = panel.end; j < cols; ++j) {
      for (int64_t k = 0; k < kEchelonPanel; ++k) {
        for (int64_t i = 0; i < rows; ++i) {
          a[i + j * rows] -= transform[i + k * rows] * moved[k + j * kEchelonPanel];
        }
      }
    }
  }
  pivots.resize(state.rank);
  return {std::move(a), std::move(pivots), state};
}

template <class T>
class EchelonEmulationTest : public ::testing::Test {};
using Types = ::testing::Types<double, Complex<float>>;
TYPED_TEST_SUITE(EchelonEmulationTest, Types);

// In each group of nine columns, each of the last five columns is the sum of the two columns before
// it.
TYPED_TEST(EchelonEmulationTest, FindsPivotColumnsAndRowSpace) {
  using T = TypeParam;
  constexpr int64_t kRows = 30;
  constexpr int64_t kCols = 45;
  const testing::HostMatrix random = testing::RandomMatrix(kRows, kCols, 4);
  std::vector<T> a;
  for (const double x : random) a.push_back(T(static_cast<RealPart<T>>(x)));
  std::vector<int64_t> independent;
  for (int64_t j = 0; j < kCols; ++j) {
    if (j % 9 < 4) {
      independent.push_back(j);
      continue;
    }
    for (int64_t i = 0; i < kRows; ++i) {
      a[i + j * kRows] = a[i + (j - 1) * kRows] + a[i + (j - 2) * kRows];
    }
  }
  const double eps = std::numeric_limits<RealPart<T>>::epsilon();
  const Reduced<T> reduced = Reduce(a, kRows, kCols, kCols, 1e4 * eps);
  ASSERT_EQ(reduced.pivot_columns, independent);
  const auto r = [&](int64_t i, int64_t j) { return reduced.r[i + j * kRows]; };
  const auto rank = static_cast<int64_t>(independent.size());
  for (int64_t k = 0; k < rank; ++k) {
    for (int64_t i = 0; i < kRows; ++i) EXPECT_EQ(r(i, independent[k]), T(i == k ? 1 : 0));
  }
  for (int64_t j = 0; j < kCols; ++j) {
    for (int64_t i = rank; i < kRows; ++i) EXPECT_EQ(r(i, j), T(0));
    for (int64_t i = 0; i < kRows; ++i) {
      T sum = 0;
      for (int64_t k = 0; k < rank; ++k) sum += a[i + independent[k] * kRows] * r(k, j);
      EXPECT_LE(double{Abs1(sum - a[i + j * kRows])}, 1e4 * eps) << i << ", " << j;
    }
  }
}

TYPED_TEST(EchelonEmulationTest, ReducesWithAugmentedColumnsAndInterchanges) {
  using T = TypeParam;
  // [0 2 | 4; 1 1 | 3; 0 0 | 5]
  const std::vector<T> a{0, 1, 0, 2, 1, 0, 4, 3, 5};
  const Reduced<T> reduced = Reduce(a, 3, 3, 2, 0);
  EXPECT_EQ(reduced.pivot_columns, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(reduced.r, (std::vector<T>{1, 0, 0, 0, 1, 0, 1, 2, 5}));
  EXPECT_EQ(Reduce(a, 3, 3, 3, 0).pivot_columns, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(Reduce(a, 3, 3, 3, 5).pivot_columns.empty());
}

TYPED_TEST(EchelonEmulationTest, ReportsTheLeastPivotAndTheLargestRejected) {
  using T = TypeParam;
  const std::vector<T> a{1, 0, 0, 0, T(0.5F), 0, 0, 0, T(0.25F), 0, 0, T(0.125F)};
  const EchelonState some = Reduce(a, 3, 4, 4, 0.3).state;
  EXPECT_EQ(some.rank, 2);
  EXPECT_EQ(some.least_pivot, 0.5);
  EXPECT_EQ(some.rejected, 1);
  EXPECT_EQ(some.largest_rejected, 0.25);
  const EchelonState all = Reduce(a, 3, 4, 4, 0).state;
  EXPECT_EQ(all.least_pivot, 0.25);
  EXPECT_EQ(all.rejected, 0);
}

// The last column of Wilkinson's matrix doubles with each pivot. It is the last column of a panel,
// a column to the right of the only panel with pivots, or an augmented column.
TYPED_TEST(EchelonEmulationTest, MeasuresTheLargestElementOfU) {
  using T = TypeParam;
  const auto wilkinson = [](int64_t n) {
    const testing::HostMatrix from = testing::GalleryNamed("gfpp").make(n);
    std::vector<T> a;
    for (const double x : from) a.push_back(T(static_cast<RealPart<T>>(x)));
    return a;
  };
  EXPECT_EQ(Reduce(wilkinson(40), 40, 40, 40, 0).state.max_abs_u, 0x1p39);
  EXPECT_EQ(Reduce(wilkinson(40), 40, 40, 39, 0).state.max_abs_u, 1);
  std::vector<T> wide = wilkinson(20);
  std::fill(wide.end() - 20, wide.end() - 1, T{0});
  wide.resize(20 * 40, T{0});
  wide.insert(wide.end(), 20, T{1});
  EXPECT_EQ(Reduce(wide, 20, 41, 41, 0).state.max_abs_u, 0x1p19);
  EXPECT_EQ(Reduce(wide, 20, 41, 40, 0).state.max_abs_u, 1);
}

TYPED_TEST(EchelonEmulationTest, MatchesTheLargestElementOfGaussianElimination) {
  using T = TypeParam;
  constexpr int64_t kRows = 50;
  constexpr int64_t kCols = 70;
  testing::HostMatrix a = testing::RandomMatrix(kRows, kCols, 8);
  std::vector<T> rounded;
  for (const double x : a) rounded.push_back(T(static_cast<RealPart<T>>(x)));
  double largest = 0;
  for (int64_t k = 0; k < kRows; ++k) {
    const auto column = a.begin() + k * kRows;
    const auto smaller = [](double x, double y) { return std::abs(x) < std::abs(y); };
    const int64_t p = std::max_element(column + k, column + kRows, smaller) - column;
    for (int64_t j = k; j < kCols; ++j) {
      std::swap(a[k + j * kRows], a[p + j * kRows]);
      largest = std::max(largest, std::abs(a[k + j * kRows]));
    }
    for (int64_t i = k + 1; i < kRows; ++i) {
      const double multiplier = a[i + k * kRows] / a[k + k * kRows];
      for (int64_t j = k; j < kCols; ++j) a[i + j * kRows] -= multiplier * a[k + j * kRows];
    }
  }
  const EchelonState state = Reduce(rounded, kRows, kCols, kCols, 0).state;
  EXPECT_NEAR(state.max_abs_u, largest, 1e-3 * largest);
}

// In the second column of [1 1000; 0 0.5], the largest entry is 1000 and the candidate pivot is
// 0.5.
TYPED_TEST(EchelonEmulationTest, ScalesTheToleranceWithGrowth) {
  using T = TypeParam;
  const std::vector<T> a{1, 0, 1000, T(0.5F)};
  EXPECT_EQ(Reduce(a, 2, 2, 2, 1e-3).state.rank, 2);
  EXPECT_EQ(Reduce(a, 2, 2, 2, 1e-3, 0, /*follows_growth=*/true).state.rank, 1);
  EXPECT_EQ(Reduce(a, 2, 2, 2, 4e-4, 0, /*follows_growth=*/true).state.rank, 2);
}

// A = B C has integer entries and rank 40. After 40 pivots, the entries below are rounding errors.
TYPED_TEST(EchelonEmulationTest, FindsTheRankOfProductsOfIntegers) {
  using T = TypeParam;
  constexpr int64_t kRows = 50;
  constexpr int64_t kCols = 60;
  constexpr int64_t kRank = 40;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const testing::HostMatrix b = testing::RandomMatrix(kRows, kRank, 2 * seed);
    const testing::HostMatrix c = testing::RandomMatrix(kRank, kCols, 2 * seed + 1);
    std::vector<T> a;
    double norm = 0;
    std::vector<double> sums(kRows);
    for (int64_t j = 0; j < kCols; ++j) {
      for (int64_t i = 0; i < kRows; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < kRank; ++k) {
          sum += std::round(2 * b[i + k * kRows]) * std::round(2 * c[k + j * kRank]);
        }
        a.push_back(T(static_cast<RealPart<T>>(sum)));
        norm = std::max(norm, sums[i] += std::abs(sum));
      }
    }
    const double eps = std::numeric_limits<RealPart<T>>::epsilon();
    const Reduced<T> reduced =
        Reduce(a, kRows, kCols, kCols, kCols * eps * norm, 0, /*follows_growth=*/true);
    EXPECT_EQ(reduced.state.rank, kRank) << seed;
  }
}

TYPED_TEST(EchelonEmulationTest, StopsOnRequest) {
  using T = TypeParam;
  const std::vector<T> a{1, 0, 0, 1};
  EXPECT_TRUE(Reduce(a, 2, 2, 2, 0, 1).pivot_columns.empty());
}

}  // namespace
}  // namespace crout::cuda::echelon_emulation_test
