// SPDX-License-Identifier: Apache-2.0

// Tests the device code of solves with fronts on host threads. Compares solves with two fronts and
// every operation with products of the factors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cuda/multifrontal/front_solve_kernels.cuh"
#include "kernels/cuda/multifrontal/light_front.cuh"
#include "kernels/cuda/multifrontal/many_children.cuh"
#include "kernels/scalar.h"
#include "kernels/util/sanitizers.h"
#include "tests/emulation/device_numbers.h"

namespace crout::cuda::front_solve_emulation_test {
namespace {

// Numbers of columns of a child front. One warp processes a light front. A heavy front has more
// rows than a block has threads and needs several steps, the last of them with a partial tile.
constexpr int32_t kHeavy = kSolveTile<double> + 20;
constexpr int32_t kLight = 20;
constexpr int32_t kBorder = 110;
static_assert(kLight <= kLightColumns && kLight + kBorder <= kLightFront);
constexpr int32_t kBefore = 7;  // number of the parent's rows before the child's border
constexpr int32_t kParentColumns = kBefore + kBorder;

// The triangles of kRandom are random and well-conditioned. The factors of kSmooth are block
// diagonal; each block is the factor of a nearly singular smooth kernel.
enum class Blocks { kRandom, kSmooth };

template <class T, int32_t kChildColumns>
class Tree {
 public:
  static constexpr int32_t kOrder = kChildColumns + kParentColumns;

  explicit Tree(Blocks blocks) {
    constexpr int64_t kSize = kChildColumns + kBorder;
    fronts_ = {{0, 0, 0, 0, kChildColumns, kBorder, 1, 0, 0},
               {kSize * kChildColumns + int64_t{kChildColumns} * kBorder, 0, kBorder, kChildColumns,
                kParentColumns, 0, -1, 0, 1}};
    for (int32_t i = 0; i < kBorder; ++i) place_.push_back(kBefore + i);
    factor_ = Random<T>(fronts_[1].factor + int64_t{kParentColumns} * kParentColumns, 1);
    const RealPart<T> scale = blocks == Blocks::kSmooth ? 0 : 0.125;
    for (T& entry : factor_) entry = entry * scale;
    for (const Front& front : fronts_) {
      const MatrixView<T> panel = front.Panel(factor_.data());
      for (int32_t k = 0; k < front.d1; ++k) panel(k, k) = panel(k, k) + T{2};
      // The permutation reverses the rows.
      for (int32_t k = 0; k < front.d1; ++k) permutation_.push_back(front.d1 - 1 - k);
      for (int32_t k = 0; blocks == Blocks::kSmooth && k + kBlock <= front.d1; k += kBlock) {
        FactorSmooth(panel, k);
      }
    }
  }

  // Returns op(A)^-1 b. A with permuted rows is L U; b and the result are kOrder x columns.
  std::vector<T> Solve(Op op, int columns, const std::vector<T>& b) {
    std::vector<T> by_front(b.size()), x(b.size()), left(kBorder * columns);
    FrontSolve<T> solve;
    solve.tree = {fronts_.data(), 2, child_.data(), place_.data()};
    solve.op = op;
    solve.columns = columns;
    solve.factor = factor_.data();
    solve.permutation = permutation_.data();
    solve.b = by_front.data();
    solve.x = x.data();
    solve.left = left.data();
    ForEach(
        solve, [&](T& own, int64_t at) { own = b[at]; }, solve.b);
    constexpr bool kIsLight = kChildColumns <= kLightColumns;
    if (kIsLight) {
      EXPECT_EQ(LaunchLightUp(solve, Set(0), nullptr), cudaSuccess);
    }
    for (int f = kIsLight ? 1 : 0; f < 2; ++f) {
      EXPECT_EQ(LaunchStartUp(solve, Set(f), op == Op::kNone, nullptr), cudaSuccess);
      for (int s = 0; s < Steps(f); ++s) {
        EXPECT_EQ(LaunchStepUp(solve, Set(f), s, nullptr), cudaSuccess);
      }
    }
    for (int f = 1; f >= (kIsLight ? 1 : 0); --f) {
      EXPECT_EQ(LaunchStartDown(solve, Set(f), nullptr), cudaSuccess);
      for (int s = 0; s < Steps(f); ++s) {
        EXPECT_EQ(LaunchStepDown(solve, Set(f), s, nullptr), cudaSuccess);
      }
    }
    if (kIsLight) {
      EXPECT_EQ(LaunchLightDown(solve, Set(0), nullptr), cudaSuccess);
    }
    std::vector<T> solution(b.size());
    ForEach(
        solve, [&](T& own, int64_t at) { solution[at] = own; }, solve.x);
    return solution;
  }

  // Returns the right-hand sides op(A) x. With random right-hand sides, solutions could be so large
  // that the test would detect no errors.
  std::vector<T> RightHandSides(Op op, int columns, const std::vector<T>& x) const {
    std::vector<T> b;
    for (const Wide<T>& value : Product<false>(op, columns, x)) b.push_back(Narrowed<T>(value));
    return b;
  }

  // Returns the largest elementwise error |op(A) x - b| / (|op(L)| |op(U)| |x|), in roundoffs.
  double BackwardError(Op op, int columns, const std::vector<T>& x, const std::vector<T>& b) const {
    const std::vector<Wide<T>> product = Product<false>(op, columns, x);
    const std::vector<Wide<T>> scale = Product<true>(op, columns, x);
    double largest = 0;
    for (size_t e = 0; e < b.size(); ++e) {
      const double error = std::abs(product[e] - ToHostFloat64(b[e])) / std::abs(scale[e]);
      if (!(error <= largest)) largest = error;
    }
    return largest / std::numeric_limits<RealPart<T>>::epsilon();
  }

 private:
  static constexpr int32_t kBlock = 16;

  // Sets the panel's diagonal block from row `first` on to L and U of exp(-((i - j) / 3)^2).
  static void FactorSmooth(const MatrixView<T>& panel, int32_t first) {
    double a[kBlock][kBlock];
    for (int i = 0; i < kBlock; ++i) {
      for (int j = 0; j < kBlock; ++j) a[i][j] = std::exp(-(i - j) * (i - j) / 9.0);
    }
    for (int k = 0; k < kBlock; ++k) {
      for (int i = k + 1; i < kBlock; ++i) {
        a[i][k] /= a[k][k];
        for (int j = k + 1; j < kBlock; ++j) a[i][j] -= a[i][k] * a[k][j];
      }
    }
    for (int i = 0; i < kBlock; ++i) {
      for (int j = 0; j < kBlock; ++j) panel(first + i, first + j) = T{a[i][j]};
    }
  }

  // Returns op(A) x in float64, or the product of the absolute values if kAbsolute.
  template <bool kAbsolute>
  std::vector<Wide<T>> Product(Op op, int columns, const std::vector<T>& x) const {
    std::vector<Wide<T>> product;
    for (int j = 0; j < columns; ++j) {
      std::vector<Wide<T>> v(kOrder);
      for (int64_t i = 0; i < kOrder; ++i) {
        v[i] = ToHostFloat64(x[i + int64_t{j} * kOrder]);
        if (kAbsolute) v[i] = std::abs(v[i]);
      }
      if (op == Op::kNone) {
        v = Permuted(Times<kAbsolute>(false, Times<kAbsolute>(true, v, op), op), op);
      } else {
        v = Times<kAbsolute>(true, Times<kAbsolute>(false, Permuted(v, op), op), op);
      }
      product.insert(product.end(), v.begin(), v.end());
    }
    return product;
  }

  template <class F>
  void ForEach(const FrontSolve<T>& solve, F f, T* vectors) const {
    for (const Front& front : fronts_) {
      for (int j = 0; j < solve.columns; ++j) {
        for (int32_t i = 0; i < front.d1; ++i) {
          f(solve.Own(vectors, front)(i, j), front.first + i + int64_t{j} * kOrder);
        }
      }
    }
  }
  FrontSet Set(int32_t f) const {
    const Front& front = fronts_[f];
    return {&order_[f], 1, front.d1, front.d2, front.d1 + front.d2, f == 1};
  }
  int Steps(int32_t f) const { return (fronts_[f].d1 + kSolveTile<T> - 1) / kSolveTile<T>; }

  // Returns an entry of U if `upper`, otherwise of L.
  Wide<T> At(bool upper, int64_t i, int64_t j) const {
    if (!upper && i == j) return 1;
    if (upper ? i > j : i < j) return 0;
    T* const factor = const_cast<T*>(factor_.data());
    const Front& child = fronts_[0];
    const Front& parent = fronts_[1];
    const int64_t d1 = kChildColumns;
    if (std::min(i, j) >= d1) return ToHostFloat64(parent.Panel(factor)(i - d1, j - d1));
    if (std::max(i, j) < d1) return ToHostFloat64(child.Panel(factor)(i, j));
    // The child's contribution is subtracted before the parent's rows are exchanged.
    const int64_t border = (upper ? j - d1 : permutation_[i]) - kBefore;
    if (border < 0 || border >= kBorder) return 0;
    return ToHostFloat64(upper ? child.U12(factor)(i, border)
                               : child.Panel(factor)(d1 + border, j));
  }
  template <bool kAbsolute>
  std::vector<Wide<T>> Times(bool upper, const std::vector<Wide<T>>& v, Op op) const {
    std::vector<Wide<T>> product(kOrder);
    for (int64_t i = 0; i < kOrder; ++i) {
      for (int64_t j = 0; j < kOrder; ++j) {
        Wide<T> entry = op == Op::kNone ? At(upper, i, j) : At(upper, j, i);
        if (op == Op::kConjugateTranspose) entry = Conj(entry);
        if (kAbsolute) entry = std::abs(entry);
        product[i] += entry * v[j];
      }
    }
    return product;
  }
  // Returns P^T v for Op::kNone, otherwise P v.
  std::vector<Wide<T>> Permuted(const std::vector<Wide<T>>& v, Op op) const {
    std::vector<Wide<T>> permuted(kOrder);
    for (const Front& front : fronts_) {
      for (int32_t i = 0; i < front.d1; ++i) {
        const int32_t from = front.first + i;
        const int32_t to = front.first + permutation_[from];
        if (op == Op::kNone) {
          permuted[to] = v[from];
        } else {
          permuted[from] = v[to];
        }
      }
    }
    return permuted;
  }

  std::vector<Front> fronts_;
  std::vector<T> factor_;
  std::vector<int32_t> permutation_, place_;
  const std::vector<int32_t> child_ = {0}, order_ = {0, 1};
};

template <class T, int32_t kChildColumns>
void ExpectSolutions(Blocks blocks) {
  using Case = Tree<T, kChildColumns>;
  Case tree(blocks);
  for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
    if (op == Op::kConjugateTranspose && !kIsComplex<T>) continue;
    for (const int columns : {1, 5}) {
      if (kSanitized && (columns == 5) != (op == Op::kTranspose)) continue;
      const std::vector<T> b =
          tree.RightHandSides(op, columns, Random<T>(Case::kOrder, columns, 5));
      EXPECT_LT(tree.BackwardError(op, columns, tree.Solve(op, columns, b), b), 8)
          << "op " << static_cast<int>(op) << ", " << columns << " columns";
    }
  }
}

template <class T>
class FrontSolveEmulationTest : public ::testing::Test {};
using Types = ::testing::Types<double, Complex<double>>;  // one type per tile size
TYPED_TEST_SUITE(FrontSolveEmulationTest, Types);

TYPED_TEST(FrontSolveEmulationTest, SolvesInStepsOfBlocks) {
  ExpectSolutions<TypeParam, kHeavy>(Blocks::kRandom);
}

TYPED_TEST(FrontSolveEmulationTest, SolvesWithNearlySingularBlocks) {
  ExpectSolutions<TypeParam, kHeavy>(Blocks::kSmooth);
}

TYPED_TEST(FrontSolveEmulationTest, SolvesByWarps) {
  ExpectSolutions<TypeParam, kLight>(Blocks::kRandom);
}

}  // namespace
}  // namespace crout::cuda::front_solve_emulation_test
