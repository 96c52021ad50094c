// SPDX-License-Identifier: Apache-2.0

// Tests the device code of solves with a front that has many children on host threads. All kernels
// that add the children's contributions must have the same result.
#include "kernels/cuda/multifrontal/many_children.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cuda/multifrontal/front_solve_kernels.cuh"
#include "kernels/cuda/multifrontal/light_front.cuh"
#include "tests/emulation/device_numbers.h"

namespace crout::cuda::many_children_emulation_test {
namespace {

// Each thread handles a child, and there are more children than threads in a block.
constexpr int32_t kCount = 300;
constexpr int32_t kOwn = 19;
constexpr int32_t kBorder = 37;

template <class T>
struct Vectors {
  std::vector<T> b, x, left;
};

template <class T>
void ExpectEqual(const Vectors<T>& made, const Vectors<T>& expected) {
  const auto equal = [](const T& a, const T& b) { return ToHostFloat64(a) == ToHostFloat64(b); };
  EXPECT_TRUE(std::ranges::equal(made.b, expected.b, equal));
  EXPECT_TRUE(std::ranges::equal(made.x, expected.x, equal));
  EXPECT_TRUE(std::ranges::equal(made.left, expected.left, equal));
}

// A front with many children. Some children have more rows than a warp has lanes; the others have
// few. Their contributions to `left` are random numbers.
template <class T>
class Star {
 public:
  explicit Star(int columns) : columns_(columns) {
    int64_t factor = 0;
    for (int32_t c = 0; c < kCount; ++c) {
      const int32_t d2 = c % 7 == 3 ? 40 : 1 + c % 5;
      fronts_.push_back({factor, 0, std::ssize(place_), c, 1, d2, kCount, 0, 0});
      factor += 1 + 2 * d2;
      const int32_t apart = (kOwn + kBorder) / d2;
      for (int32_t i = 0; i < d2; ++i) place_.push_back(c % apart + i * apart);
      child_.push_back(c);
    }
    fronts_.push_back({factor, 0, std::ssize(place_), kCount, kOwn, kBorder, -1, 0, kCount});
    rows_ = std::ssize(place_) + kBorder;
    factor_ = Random<T>(factor + int64_t{kOwn + kBorder} * kOwn + kOwn * kBorder, 1);
    for (T& entry : factor_) entry = entry * RealPart<T>{0.125};
    const MatrixView<T> panel = fronts_.back().Panel(factor_.data());
    for (int32_t k = 0; k < kOwn; ++k) panel(k, k) = panel(k, k) + T{2};
    permutation_.resize(kCount + kOwn);
    for (int32_t k = 0; k < kOwn; ++k) permutation_[kCount + k] = (k + 5) % kOwn;
  }

  // Calls launch(solve, set) and returns the vectors.
  template <class F>
  Vectors<T> Run(Op op, F launch) const {
    Vectors<T> made = {Random<T>(kCount + kOwn, columns_, 4), Random<T>(kCount + kOwn, columns_, 5),
                       Random<T>(rows_, columns_, 6)};
    FrontSolve<T> solve;
    solve.tree = {fronts_.data(), kCount + 1, child_.data(), place_.data()};
    solve.op = op;
    solve.columns = columns_;
    solve.factor = factor_.data();
    solve.permutation = permutation_.data();
    solve.b = made.b.data();
    solve.x = made.x.data();
    solve.left = made.left.data();
    EXPECT_EQ(launch(solve, FrontSet{&order_, 1, kOwn, kBorder, kOwn + kBorder, kCount}),
              cudaSuccess);
    return made;
  }

 private:
  const int columns_;
  int64_t rows_ = 0;
  std::vector<Front> fronts_;
  std::vector<T> factor_;
  std::vector<int32_t> permutation_, place_, child_;
  const int32_t order_ = kCount;
};

template <class T>
class ManyChildrenEmulationTest : public ::testing::Test {};
using Types = ::testing::Types<double, Complex<double>>;
TYPED_TEST_SUITE(ManyChildrenEmulationTest, Types);

TYPED_TEST(ManyChildrenEmulationTest, AddsByRowsWithTheSameResult) {
  using T = TypeParam;
  for (const int columns : {1, 5}) {
    const Star<T> star(columns);
    const bool interchanges = columns > 1;
    const Vectors<T> expected = star.Run(Op::kNone, [&](const auto& solve, const FrontSet& set) {
      return LaunchStartUp(solve, set, interchanges, nullptr);
    });
    const Vectors<T> made = star.Run(Op::kNone, [&](const auto& solve, const FrontSet& set) {
      return LaunchStartUpOfMany(solve, set, interchanges, nullptr);
    });
    ExpectEqual(made, expected);
  }
}

TYPED_TEST(ManyChildrenEmulationTest, SolvesByAWarpWithTheSameResult) {
  using T = TypeParam;
  for (const int columns : {1, 5}) {
    const Star<T> star(columns);
    for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
      const Vectors<T> expected = star.Run(op, [&](const auto& solve, const FrontSet& set) {
        EXPECT_EQ(LaunchStartUp(solve, set, op == Op::kNone, nullptr), cudaSuccess);
        return LaunchStepUp(solve, set, 0, nullptr);
      });
      const Vectors<T> one_by_one = star.Run(op, [&](const auto& solve, const FrontSet& set) {
        return LaunchLightUp(solve, set, nullptr);
      });
      const Vectors<T> made = star.Run(op, [&](const auto& solve, const FrontSet& set) {
        return light_front::LaunchFor<true, light_front::kRhsPerWarp>(solve, set, nullptr);
      });
      ExpectEqual(made, one_by_one);
      double largest = 0;
      for (size_t e = 0; e < made.b.size(); ++e) {
        largest = std::max<double>(
            largest, std::abs(ToHostFloat64(made.b[e]) - ToHostFloat64(expected.b[e])));
      }
      for (size_t e = 0; e < made.left.size(); ++e) {
        largest = std::max<double>(
            largest, std::abs(ToHostFloat64(made.left[e]) - ToHostFloat64(expected.left[e])));
      }
      EXPECT_LT(largest, 1e-13) << "op " << static_cast<int>(op) << ", " << columns << " columns";
    }
  }
}

}  // namespace
}  // namespace crout::cuda::many_children_emulation_test
