// SPDX-License-Identifier: Apache-2.0

// Tests the kernel for a block row of U against substitution on the host.
#include "kernels/cuda/crout_lu/block_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cuda/blocked/interchange_rows.h"
#include "tests/gpu/harness/kernel_test.h"
#include "tests/gpu/harness/wide.h"
#include "tests/support/matrices/gallery.h"

namespace crout::cuda::block_row_test {
namespace {

using testing::HostMatrix;

constexpr int64_t kAbove = 5;  // rows above the block
// Largest elements of a triangle. The elements of its inverted tiles are about 1 for kSmall, and 28
// or more for kLarge.
constexpr double kSmall = 0.3;
constexpr double kLarge = 1;

// Whether LaunchBlockRow supports the type.
template <class T>
constexpr bool kMovesByProducts = sizeof(T) <= sizeof(double);

// Returns numbers whose parts are uniform in [-1, 1].
template <class T>
std::vector<T> Uniform(int64_t rows, int64_t cols, uint64_t seed) {
  std::vector<T> values(rows * cols);
  if constexpr (kIsComplex<T>) {
    const testing::ComplexMatrix wide = testing::RandomComplex(rows, cols, seed);
    std::transform(wide.begin(), wide.end(), values.begin(),
                   [](const auto& z) { return T(Complex<double>(z.real(), z.imag())); });
  } else {
    const HostMatrix wide = testing::RandomMatrix(rows, cols, seed);
    values.assign(wide.begin(), wide.end());
  }
  return values;
}

class BlockRowTest : public KernelTest {
 protected:
  // Uses a triangle of order `order` with elements up to `size` below its diagonal, and a
  // rows x columns right-hand side.
  template <class T>
  void ExpectAsSubstitution(int64_t rows, int64_t order, int64_t columns, double size,
                            bool interchanges) {
    SCOPED_TRACE(::testing::Message() << rows << " rows, order " << order << ", " << columns
                                      << " columns, " << NameOf(kDTypeOf<T>) << ", elements to "
                                      << size << ", interchanges " << interchanges);
    std::vector<T> a = Uniform<T>(rows, order + columns, 21);
    for (int64_t k = 0; k < order; ++k) {
      for (int64_t i = 0; i < rows; ++i) a[i + k * rows] *= T(static_cast<RealPart<T>>(size));
    }
    std::mt19937 random(22);
    std::vector<int64_t> ipiv(order);
    for (int64_t k = 0; k < order; ++k) {
      ipiv[k] = kAbove + k + 1 + std::uniform_int_distribution<int64_t>(0, rows - 1 - k)(random);
    }

    const auto matrix = Send(a);
    const auto pivots = Send(ipiv);
    const auto control = Control<T>();
    // Send initializes the unused tiles of the plan too, because a later copy reads the whole plan.
    const auto plan = Send(std::vector<BlockRowPlan<T>>(1));
    const MatrixView<T> block = {matrix.get(), order, order, rows};
    const MatrixView<T> b = {matrix.get() + order * rows, rows, columns, rows};
    ASSERT_EQ(LaunchPlanBlockRow(block, interchanges ? pivots.get() : nullptr, kAbove, plan.get(),
                                 control.get(), false, nullptr),
              cudaSuccess);
    if (interchanges || order > kSolvedRows) {
      if constexpr (kMovesByProducts<T>) {
        ASSERT_EQ(LaunchBlockRow<T>(block, plan.get(), b, control.get(), false, nullptr),
                  cudaSuccess);
      } else {
        FAIL() << "not for elements of this size";
      }
    } else {
      ASSERT_EQ(LaunchSolveRows<T>(block, plan->tiles, b, control.get(), false, nullptr),
                cudaSuccess);
    }
    const std::vector<T> got = Receive(matrix, a.size());
    const std::vector<BlockRowPlan<T>> planned = Receive(plan, 1);
    for (int64_t tile = 0; tile * BlockRowPlan<T>::kTile < order; ++tile) {
      EXPECT_EQ(planned[0].tiles[tile].substitute != 0, size == kLarge) << "tile " << tile;
    }

    ASSERT_TRUE(std::equal(a.begin(), a.begin() + order * rows, got.begin()));
    // Each part of a complex product has twice as many terms.
    constexpr double kRoundings =
        (kIsComplex<T> ? 150 : 50) * std::numeric_limits<RealPart<T>>::epsilon();
    for (int64_t j = 0; j < columns; ++j) {
      std::vector<T> x(a.begin() + (order + j) * rows, a.begin() + (order + j + 1) * rows);
      if (interchanges) {
        for (int64_t k = 0; k < order; ++k) std::swap(x[k], x[ipiv[k] - 1 - kAbove]);
      }
      for (int64_t i = 0; i < rows; ++i) {
        const HostWide<T> solved = ToWide(got[i + (order + j) * rows]);
        const HostWide<T> before = ToWide(x[i]);
        if (i >= order) {
          ASSERT_EQ(solved, before) << "row " << i << " of column " << j;
          continue;
        }
        // L x must equal the original right-hand side, up to the roundoff of the row's terms.
        HostWide<T> product = solved;
        double terms = std::abs(solved) + std::abs(before);
        for (int64_t k = 0; k < i; ++k) {
          const HostWide<T> term = ToWide(a[i + k * rows]) * ToWide(got[k + (order + j) * rows]);
          product += term;
          terms += std::abs(term);
        }
        ASSERT_LE(std::abs(product - before), kRoundings * terms)
            << "row " << i << " of column " << j;
      }
    }
  }

  // Tests without and with interchanges where the kernels support the shape and type.
  template <class T>
  void ExpectBothWays(int64_t rows, int64_t order, int64_t columns, double size) {
    if (kMovesByProducts<T> || order <= kSolvedRows) {
      ExpectAsSubstitution<T>(rows, order, columns, size, false);
    }
    if (kMovesByProducts<T>) ExpectAsSubstitution<T>(rows, order, columns, size, true);
  }
};

struct Shape {
  int64_t rows;
  int64_t order;
  int64_t columns;
};

TEST_F(BlockRowTest, SolvesSmallShapes) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{3, 2, 5}, Shape{40, 31, 8}, Shape{32, 32, 9},
                             Shape{100, 33, 1}, Shape{110, 100, 17}}) {
    ExpectBothWays<double>(shape.rows, shape.order, shape.columns, kSmall);
    ExpectBothWays<float>(shape.rows, shape.order, shape.columns, kSmall);
    ExpectBothWays<Complex<double>>(shape.rows, shape.order, shape.columns, kSmall);
    ExpectBothWays<Complex<float>>(shape.rows, shape.order, shape.columns, kSmall);
  }
}

// Uses shapes that need all threads of a block, and shapes whose many columns need other kernels.
TEST_F(BlockRowTest, SolvesLargeShapes) {
  for (const Shape& shape : {Shape{300, 300, 17}, Shape{700, 512, 40}, Shape{512, 512, 8},
                             Shape{90, 64, 1100}, Shape{600, 512, 1057}, Shape{128, 128, 1057}}) {
    ExpectBothWays<double>(shape.rows, shape.order, shape.columns, kSmall);
    ExpectBothWays<float>(shape.rows, shape.order, shape.columns, kSmall);
    ExpectBothWays<Complex<double>>(shape.rows, shape.order, shape.columns, kSmall);
    ExpectBothWays<Complex<float>>(shape.rows, shape.order, shape.columns, kSmall);
  }
}

TEST_F(BlockRowTest, SubstitutesIfAnInverseIsLarge) {
  for (const int64_t columns : {3, 1100}) {
    ExpectBothWays<double>(100, 90, columns, kLarge);
    ExpectBothWays<float>(100, 90, columns, kLarge);
    ExpectBothWays<Complex<double>>(100, 90, columns, kLarge);
    ExpectBothWays<Complex<float>>(100, 90, columns, kLarge);
  }
}

// Kernels on a stream may overlap. They must leave the matrix of a halted factorization unchanged.
TEST_F(BlockRowTest, RunsAfterItsPlanUnlessHalted) {
  constexpr int64_t kRows = 300;
  constexpr int64_t kOrder = 128;
  constexpr int64_t kColumns = 50;
  HostMatrix a = testing::RandomMatrix(kRows, kOrder + kColumns, 25);
  for (int64_t e = 0; e < kRows * kOrder; ++e) a[e] *= kSmall;
  std::vector<int64_t> ipiv(kOrder);
  for (int64_t k = 0; k < kOrder; ++k) ipiv[k] = k + 1 + (7 * k) % (kRows - k);
  const auto run = [&](bool moves, bool overlap, bool halted) {
    const auto stream = MakeStream();
    const auto matrix = Send(a);
    const auto pivots = Send(ipiv);
    const auto control = halted ? Halted<double>() : Control<double>();
    const auto plan = Send(std::vector<BlockRowPlan<double>>(1));
    const MatrixView<double> block = {matrix.get(), kOrder, kOrder, kRows};
    const MatrixView<double> b = {matrix.get() + kOrder * kRows, kRows, kColumns, kRows};
    EXPECT_EQ(LaunchPlanBlockRow(block, moves ? pivots.get() : nullptr, 0, plan.get(),
                                 control.get(), overlap, stream.get()),
              cudaSuccess);
    EXPECT_EQ(
        moves
            ? LaunchBlockRow<double>(block, plan.get(), b, control.get(), overlap, stream.get())
            : LaunchSolveRows<double>(block, plan->tiles, b, control.get(), overlap, stream.get()),
        cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    return Receive(matrix, a.size());
  };
  for (const bool moves : {false, true}) {
    const HostMatrix solved = run(moves, false, false);
    EXPECT_NE(solved, a);
    EXPECT_EQ(run(moves, true, false), solved);
    EXPECT_EQ(run(moves, true, true), a);
  }
}

TEST_F(BlockRowTest, InterchangesRowsLikeLaswp) {
  constexpr int64_t kRows = 1000;
  for (const int64_t count : {1, 31, 65, 512, 600, 1000}) {
    const HostMatrix a = testing::RandomMatrix(kRows, 11, 23);
    std::mt19937 random(24);
    std::vector<int64_t> ipiv(kRows);
    // Near and distant rows are interchanged, some of them repeatedly.
    for (int64_t k = 0; k < kRows; ++k) {
      const int64_t span = k % 3 == 0 ? std::min<int64_t>(kRows - k, 7) : kRows - k;
      ipiv[k] = k % 5 == 0 ? kRows : k + 1 + static_cast<int64_t>(random() % span);
    }
    const auto matrix = Send(a);
    const auto pivots = Send(ipiv);
    const auto control = Control<double>();
    const auto plan = Allocate<InterchangePlan>(1);
    const MatrixView<double> view = {matrix.get(), kRows, 11, kRows};
    ASSERT_EQ(
        LaunchInterchangeRows(view, pivots.get(), 0, count, plan.get(), control.get(), nullptr),
        cudaSuccess);
    const HostMatrix got = Receive(matrix, a.size());
    HostMatrix expected = a;
    for (int64_t j = 0; j < 11; ++j) {
      for (int64_t k = 0; k < count; ++k) {
        std::swap(expected[k + j * kRows], expected[ipiv[k] - 1 + j * kRows]);
      }
    }
    EXPECT_EQ(got, expected) << count << " interchanges";
  }
}

}  // namespace
}  // namespace crout::cuda::block_row_test
