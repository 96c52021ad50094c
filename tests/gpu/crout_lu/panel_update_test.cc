// SPDX-License-Identifier: Apache-2.0

// Tests the kernels that update other columns after a panel of LU. Compares each kernel with
// interchanges, substitution and products on the host.
#include "kernels/cuda/crout_lu/panel_update.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/gpu/harness/kernel_test.h"
#include "tests/gpu/harness/vectors.h"
#include "tests/gpu/harness/wide.h"

namespace crout::cuda::panel_update_test {
namespace {

constexpr int64_t kBegin = 5;    // number of factored columns before the panel
constexpr int64_t kPadding = 3;  // elements between columns

// The rows and columns of the panel, and the numbers of other columns in their order in the matrix.
struct Shape {
  int64_t rows;
  int64_t width;
  int64_t left;
  int64_t right;
  int64_t beyond;
};

// Numbers of columns range from 0 to 70. Some are multiples of a warp's 4 or a tile's 32 columns.
const Shape kShapes[] = {
    {1, 1, 1, 1, 1},     {40, 1, 3, 5, 2},     {70, 1, 0, 33, 6},  {8, 8, 0, 7, 4},
    {9, 8, 4, 1, 0},     {100, 8, 5, 33, 1},   {31, 31, 6, 1, 3},  {32, 31, 2, 32, 0},
    {64, 31, 0, 37, 9},  {32, 32, 4, 4, 4},    {33, 32, 1, 70, 0}, {65, 32, 0, 31, 0},
    {64, 32, 17, 64, 8}, {100, 32, 9, 35, 13}, {50, 7, 10, 0, 6},  {20, 8, 0, 0, 0},
};

// A matrix with the columns left, panel, right and beyond, in this order.
template <class T>
struct Problem {
  explicit Problem(const Shape& shape)
      : shape(shape),
        ld(shape.rows + kPadding),
        panel(shape.left),
        right(panel + shape.width),
        beyond(right + shape.right),
        end(beyond + shape.beyond),
        a(RandomVector<T>(ld * end, 31)),
        ipiv(kBegin + shape.width) {
    // The kernels must not read the panel's elements outside L, so these are NaN.
    for (int64_t k = 0; k < shape.width; ++k) {
      std::fill_n(a.begin() + (panel + k) * ld, k + 1, kNan<T>);
    }
    // Some rows are interchanged with the last row, and the others with a random row at or below
    // them.
    std::mt19937 random(32);
    for (int64_t k = 0; k < shape.width; ++k) {
      const int64_t row =
          k % 3 == 0 ? shape.rows - 1 : k + static_cast<int64_t>(random() % (shape.rows - k));
      ipiv[kBegin + k] = kBegin + row + 1;
    }
  }

  T L(int64_t i, int64_t k) const { return a[i + (panel + k) * ld]; }
  bool InPanel(int64_t j) const { return panel <= j && j < right; }
  bool InRight(int64_t j) const { return right <= j && j < beyond; }

  std::vector<T> Interchanged() const {
    std::vector<T> b = a;
    for (int64_t j = 0; j < end; ++j) {
      if (InPanel(j)) continue;
      for (int64_t k = 0; k < shape.width; ++k) {
        std::swap(b[k + j * ld], b[ipiv[kBegin + k] - 1 - kBegin + j * ld]);
      }
    }
    return b;
  }

  Shape shape;
  int64_t ld;
  int64_t panel, right, beyond, end;  // first column of each part, and the number of columns
  std::vector<T> a;
  std::vector<int64_t> ipiv;
};

class PanelUpdateTest : public KernelTest {
 protected:
  // A problem in GPU memory.
  template <class T>
  struct Sent {
    explicit Sent(const Problem<T>& problem, bool halted = false)
        : problem(problem),
          matrix(Send(problem.a)),
          ipiv(Send(problem.ipiv)),
          control(halted ? Halted<T>() : Control<T>()) {
      panel.a = Columns(problem.panel, problem.right);
      panel.begin = kBegin;
      panel.ipiv = ipiv.get();
      panel.control = control.get();
    }

    MatrixView<T> Columns(int64_t begin, int64_t end) const {
      return {matrix.get() + begin * problem.ld, problem.shape.rows, end - begin, problem.ld};
    }
    void SwapAndSolve(bool overlap, cudaStream_t stream) const {
      EXPECT_EQ(LaunchSwapAndSolve(panel, Columns(0, problem.panel),
                                   Columns(problem.right, problem.beyond),
                                   Columns(problem.beyond, problem.end), overlap, stream),
                cudaSuccess);
    }
    void Subtract(bool overlap, cudaStream_t stream) const {
      EXPECT_EQ(LaunchSubtractPanel(panel, Columns(problem.right, problem.beyond), overlap, stream),
                cudaSuccess);
    }
    std::vector<T> Get() const { return Receive(matrix, problem.a.size()); }

    const Problem<T>& problem;
    OnDevice<T> matrix;
    OnDevice<int64_t> ipiv;
    OnDevice<LuControl<T>> control;
    LuPanel<T> panel;
  };

  template <class T>
  void ExpectSolvedAndSubtracted(const Shape& shape);
  template <class T>
  void ExpectNothingAfterAHalt(const Shape& shape);
  template <class T>
  void ExpectSameBitsWithOverlap(const Shape& shape);
};

::testing::Message Name(const Shape& shape, DType dtype) {
  return ::testing::Message() << shape.rows << " x " << shape.width << " " << NameOf(dtype)
                              << ", left " << shape.left << ", right " << shape.right << ", beyond "
                              << shape.beyond;
}

// Adds the product of row i of L and column j of `u` to `product`, and the magnitudes of its terms
// to `terms`.
template <class T>
void MultiplyRow(const Problem<T>& problem, int64_t i, const std::vector<T>& u, int64_t j,
                 HostWide<T>& product, double& terms) {
  for (int64_t k = 0; k < std::min(i, problem.shape.width); ++k) {
    const HostWide<T> term = ToWide(problem.L(i, k)) * ToWide(u[k + j * problem.ld]);
    product += term;
    terms += std::abs(term);
  }
}

template <class T>
void PanelUpdateTest::ExpectSolvedAndSubtracted(const Shape& shape) {
  SCOPED_TRACE(Name(shape, kDTypeOf<T>));
  const Problem<T> problem(shape);
  const Sent<T> sent(problem);
  sent.SwapAndSolve(false, nullptr);
  const std::vector<T> solved = sent.Get();
  sent.Subtract(false, nullptr);
  const std::vector<T> subtracted = sent.Get();

  // Each side has one roundoff per term. Complex terms have several products.
  const double rounding = static_cast<double>((kIsComplex<T> ? 4 : 1) * (shape.width + 2)) *
                          std::numeric_limits<RealPart<T>>::epsilon();
  std::vector<T> solve_leaves = problem.Interchanged();
  std::vector<T> subtract_leaves = solved;
  for (int64_t j = problem.right; j < problem.beyond; ++j) {
    for (int64_t i = 0; i < shape.rows; ++i) {
      const int64_t e = i + j * problem.ld;
      HostWide<T> product = 0;
      double terms = 0;
      MultiplyRow(problem, i, solved, j, product, terms);
      if (i < shape.width) {
        // L x must equal the right-hand side.
        const HostWide<T> x = ToWide(solved[e]);
        ASSERT_LE(std::abs(x + product - ToWide(solve_leaves[e])), rounding * (terms + std::abs(x)))
            << "row " << i << " of column " << j;
        solve_leaves[e] = solved[e];
      } else {
        const HostWide<T> before = ToWide(solved[e]);
        ASSERT_LE(std::abs(ToWide(subtracted[e]) - (before - product)),
                  rounding * (terms + std::abs(before)))
            << "row " << i << " of column " << j;
        subtract_leaves[e] = subtracted[e];
      }
    }
  }
  // The other elements are only interchanged.
  EXPECT_TRUE(SameBits(solved, solve_leaves));
  EXPECT_TRUE(SameBits(subtracted, subtract_leaves));
}

TEST_F(PanelUpdateTest, MatchesTheHost) {
  for (const Shape& shape : kShapes) {
    ExpectSolvedAndSubtracted<double>(shape);
    ExpectSolvedAndSubtracted<float>(shape);
    ExpectSolvedAndSubtracted<Complex<double>>(shape);
    ExpectSolvedAndSubtracted<Complex<float>>(shape);
  }
}

template <class T>
void PanelUpdateTest::ExpectNothingAfterAHalt(const Shape& shape) {
  SCOPED_TRACE(Name(shape, kDTypeOf<T>));
  const Problem<T> problem(shape);
  const Sent<T> sent(problem, true);
  sent.SwapAndSolve(false, nullptr);
  sent.Subtract(false, nullptr);
  EXPECT_TRUE(SameBits(sent.Get(), problem.a));
}

TEST_F(PanelUpdateTest, DoesNothingAfterAHalt) {
  for (const Shape& shape : kShapes) {
    ExpectNothingAfterAHalt<double>(shape);
    ExpectNothingAfterAHalt<float>(shape);
    ExpectNothingAfterAHalt<Complex<double>>(shape);
    ExpectNothingAfterAHalt<Complex<float>>(shape);
  }
}

template <class T>
void PanelUpdateTest::ExpectSameBitsWithOverlap(const Shape& shape) {
  SCOPED_TRACE(Name(shape, kDTypeOf<T>));
  const Problem<T> problem(shape);
  const auto run = [&](bool overlap) {
    const Sent<T> sent(problem);
    const Stream stream = MakeStream();
    for (int round = 0; round < 3; ++round) {
      sent.SwapAndSolve(overlap && round > 0, stream.get());
      sent.Subtract(overlap, stream.get());
    }
    return sent.Get();
  };
  EXPECT_TRUE(SameBits(run(true), run(false)));
}

TEST_F(PanelUpdateTest, GivesTheSameBitsWithOverlap) {
  for (const Shape& shape : kShapes) {
    ExpectSameBitsWithOverlap<double>(shape);
    ExpectSameBitsWithOverlap<float>(shape);
    ExpectSameBitsWithOverlap<Complex<double>>(shape);
    ExpectSameBitsWithOverlap<Complex<float>>(shape);
  }
}

}  // namespace
}  // namespace crout::cuda::panel_update_test
