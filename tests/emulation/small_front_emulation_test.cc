// SPDX-License-Identifier: Apache-2.0

// Tests the device code of small fronts on host threads. The tree has a star, a chain, and tiny and
// small fronts. Compares the result with plain elimination with the same pivots.
#include "kernels/cuda/multifrontal/small_front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/scalar.h"
#include "tests/emulation/device_numbers.h"

namespace crout::cuda::small_front_emulation_test {
namespace {

constexpr double kMinPivot = 1e-3;

class Tree {
 public:
  Tree() {
    // The root has more children than a warp has lanes. The last two children have children.
    const int32_t root = Add(-1, 40, 0);
    for (int k = 0; k < 40; ++k) Add(root, 2, 3);
    const int32_t large = Add(root, 5, 30);
    for (int k = 0; k < 3; ++k) Add(large, 6, 20);
    int32_t last = Add(root, 1, 4);
    for (int k = 0; k < 4; ++k) last = Add(last, 1, 4);
    // A second root without children.
    Add(-1, 33, 0);
    LinkChildren();
  }

  int32_t fronts() const { return static_cast<int32_t>(fronts_.size()); }
  int32_t levels() const { return *std::ranges::max_element(level_) + 1; }
  int32_t positions() const { return fronts_.back().first + fronts_.back().d1; }
  const Front& front(int32_t f) const { return fronts_[f]; }
  // Returns the last front of the chain, which has one column.
  int32_t deepest() const {
    return static_cast<int32_t>(std::ranges::max_element(level_) - level_.begin());
  }
  int64_t factor_entries() const { return factor_entries_; }
  int64_t contribution_entries() const { return contribution_entries_; }
  const std::vector<int32_t>& child() const { return child_; }
  const int32_t* PlacesOf(int32_t f) const { return place_.data() + fronts_[f].border; }
  FrontTree OnDevice() const { return {fronts_.data(), fronts(), child_.data(), place_.data()}; }

  // Returns the tiny fronts of a level, or its other fronts.
  std::vector<int32_t> Level(int32_t level, bool tiny) const {
    std::vector<int32_t> found;
    for (int32_t f = 0; f < fronts(); ++f) {
      if (level_[f] == level && (fronts_[f].size() <= kTinyFront) == tiny) found.push_back(f);
    }
    return found;
  }

 private:
  int32_t Add(int32_t parent, int32_t d1, int32_t d2) {
    Front front = {};
    front.factor = factor_entries_;
    front.contribution = contribution_entries_;
    front.border = static_cast<int64_t>(place_.size());
    front.first = fronts_.empty() ? 0 : positions();
    front.d1 = d1;
    front.d2 = d2;
    front.parent = parent;
    factor_entries_ += front.size() * d1 + int64_t{d1} * d2;
    contribution_entries_ += int64_t{d2} * d2;
    if (parent >= 0) {
      const int64_t apart = fronts_[parent].size() / d2;
      const int64_t shift = fronts() % (fronts_[parent].size() - apart * (d2 - 1));
      for (int32_t i = 0; i < d2; ++i) place_.push_back(static_cast<int32_t>(shift + apart * i));
    }
    level_.push_back(parent < 0 ? 0 : level_[parent] + 1);
    fronts_.push_back(front);
    return fronts() - 1;
  }
  void LinkChildren() {
    for (int32_t f = 0; f < fronts(); ++f) {
      fronts_[f].child_begin = static_cast<int32_t>(child_.size());
      for (int32_t c = 0; c < fronts(); ++c) {
        if (fronts_[c].parent == f) child_.push_back(c);
      }
      fronts_[f].child_end = static_cast<int32_t>(child_.size());
    }
  }

  std::vector<Front> fronts_;
  std::vector<int32_t> level_, child_, place_;
  int64_t factor_entries_ = 0;
  int64_t contribution_entries_ = 0;
};

template <class T>
struct Factored {
  std::vector<T> factor;
  std::vector<int64_t> ipiv;
  std::vector<uint8_t> pivot_flags;
};

template <class T>
std::vector<T> EntriesOf(const Tree& tree) {
  std::vector<T> a = Random<T>(tree.factor_entries(), 1);
  a[tree.front(tree.deepest()).factor] = T{0};  // a zero pivot
  return a;
}

// Factors with one launch if `together`, otherwise with one launch per level.
template <class T>
Factored<T> Factor(const Tree& tree, bool together) {
  Factored<T> done = {EntriesOf<T>(tree), std::vector<int64_t>(tree.positions()),
                      std::vector<uint8_t>(tree.positions())};
  std::vector<T> contributions(tree.contribution_entries(),
                               T{std::numeric_limits<RealPart<T>>::quiet_NaN()});
  const std::vector<RealPart<T>> least(tree.positions(), static_cast<RealPart<T>>(kMinPivot));
  std::vector<int32_t> arrivals(tree.fronts());
  int32_t block = 0;
  std::vector<int32_t> order;
  SmallFronts fronts;
  const auto run = [&](const FrontArrivals& by) {
    EXPECT_EQ(LaunchSmallFronts<T>(tree.OnDevice(), order.data(), fronts, done.factor.data(),
                                   contributions.data(), done.ipiv.data(),
                                   {least.data(), done.pivot_flags.data()}, by, nullptr),
              cudaSuccess);
  };
  for (int32_t level = tree.levels() - 1; level >= 0; --level) {
    for (const bool tiny : {false, true}) {
      const std::vector<int32_t> batch = tree.Level(level, tiny);
      const auto begin = static_cast<int32_t>(order.size());
      order.insert(order.end(), batch.begin(), batch.end());
      fronts.Add(begin, static_cast<int32_t>(order.size()), tiny ? kTinyFront : kSmallFront,
                 together && level + 1 < tree.levels());
    }
    if (together) continue;
    run({});
    fronts = {};
  }
  if (together) {
    run({arrivals.data(), &block});
    EXPECT_EQ(block, fronts.blocks());
  }
  return done;
}

// Compares `done` with elimination in float64 with the same pivots.
template <class T>
class Check {
 public:
  Check(const Tree& tree, const Factored<T>& done) : tree_(tree), done_(done) {
    for (const T& entry : EntriesOf<T>(tree)) a_.push_back(ToHostFloat64(entry));
    rest_.resize(tree.contribution_entries());
  }

  void Run() {
    for (int32_t level = tree_.levels() - 1; level >= 0; --level) {
      for (const bool tiny : {false, true}) {
        for (const int32_t f : tree_.Level(level, tiny)) Eliminate(f);
      }
    }
    double largest = 0;
    for (size_t e = 0; e < a_.size(); ++e) {
      largest = std::max(largest,
                         std::abs(a_[e] - ToHostFloat64(done_.factor[e])) / (1 + std::abs(a_[e])));
    }
    EXPECT_LT(largest, 2e4 * std::numeric_limits<RealPart<T>>::epsilon());
    EXPECT_EQ(std::ranges::count(done_.pivot_flags, MinPivots<T>::kPerturbedZero), 1);
    EXPECT_EQ(done_.pivot_flags[tree_.front(tree_.deepest()).first], MinPivots<T>::kPerturbedZero);
  }

 private:
  using Value = Wide<T>;
  static double Size(const Value& x) { return std::abs(std::real(x)) + std::abs(std::imag(x)); }

  Value& At(const Front& front, int64_t i, int64_t j) {
    if (j < front.d1) return front.Panel(a_.data())(i, j);
    if (i < front.d1) return front.U12(a_.data())(i, j - front.d1);
    return front.Contribution(rest_.data())(i - front.d1, j - front.d1);
  }

  void Eliminate(int32_t f) {
    const Front& front = tree_.front(f);
    for (int32_t c = front.child_begin; c < front.child_end; ++c) {
      const Front& child = tree_.front(tree_.child()[c]);
      const int32_t* const place = tree_.PlacesOf(tree_.child()[c]);
      for (int32_t j = 0; j < child.d2; ++j) {
        for (int32_t i = 0; i < child.d2; ++i) {
          At(front, place[i], place[j]) += child.Contribution(rest_.data())(i, j);
        }
      }
    }
    const int64_t size = front.size();
    for (int64_t k = 0; k < front.d1; ++k) {
      const int64_t p = done_.ipiv[front.first + k] - 1;
      ASSERT_GE(p, k);
      ASSERT_LT(p, front.d1);
      for (int64_t i = k; i < front.d1; ++i) {
        EXPECT_GE(Size(At(front, p, k)) * 1.001, Size(At(front, i, k))) << f << " " << k;
      }
      for (int64_t j = 0; j < size; ++j) std::swap(At(front, k, j), At(front, p, j));
      Value& pivot = At(front, k, k);
      if (Size(pivot) < kMinPivot)
        pivot = pivot == Value{0} ? kMinPivot : pivot * (kMinPivot / Size(pivot));
      for (int64_t i = k + 1; i < size; ++i) At(front, i, k) /= pivot;
      for (int64_t j = k + 1; j < size; ++j) {
        for (int64_t i = k + 1; i < size; ++i) At(front, i, j) -= At(front, i, k) * At(front, k, j);
      }
    }
  }

  const Tree& tree_;
  const Factored<T>& done_;
  std::vector<Value> a_, rest_;
};

template <class T>
class SmallFrontEmulationTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, Complex<float>>;
TYPED_TEST_SUITE(SmallFrontEmulationTest, Types);

TYPED_TEST(SmallFrontEmulationTest, FactorsATreeInOneKernel) {
  const Tree tree;
  const Factored<TypeParam> together = Factor<TypeParam>(tree, true);
  Check<TypeParam>(tree, together).Run();
  const Factored<TypeParam> by_levels = Factor<TypeParam>(tree, false);
  EXPECT_EQ(std::memcmp(together.factor.data(), by_levels.factor.data(),
                        together.factor.size() * sizeof(TypeParam)),
            0);
  EXPECT_EQ(together.ipiv, by_levels.ipiv);
  EXPECT_EQ(together.pivot_flags, by_levels.pivot_flags);
}

}  // namespace
}  // namespace crout::cuda::small_front_emulation_test
