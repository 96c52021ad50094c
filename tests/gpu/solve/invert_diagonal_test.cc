// SPDX-License-Identifier: Apache-2.0

// Tests the inverses of a factor's diagonal blocks and their condition numbers against products and
// sums in float64 or complex128 on the host.
#include "kernels/cuda/solve/invert_diagonal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/gpu/harness/kernel_test.h"
#include "tests/gpu/harness/vectors.h"
#include "tests/gpu/harness/wide.h"

namespace crout::cuda::invert_diagonal_test {
namespace {

constexpr int64_t kLuPadding = 3;
constexpr int64_t kInversePadding = 5;

struct Shape {
  int64_t n;
  int64_t block;
};

// Orders n are below, at and above the block's order. Some block orders are multiples of the 32
// rows of a leaf or the 16 columns of a strip.
constexpr Shape kShapes[] = {{1, 1},   {7, 7},    {16, 16},  {33, 32},   {40, 40},  {64, 32},
                             {70, 17}, {100, 33}, {100, 48}, {130, 100}, {300, 256}};

// Returns a factor with well-conditioned blocks. The real part of a diagonal element has a
// magnitude of 1 to 2 and either sign. The other elements are small.
template <class T>
std::vector<T> Factor(int64_t n) {
  const int64_t ld = n + kLuPadding;
  std::vector<T> lu = RandomVector<T>(ld * n, 71);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      T& element = lu[i + j * ld];
      const HostWide<T> wide = ToWide(element);
      element =
          i == j ? element + T(std::real(wide) < 0 ? -1 : 1) : element * T(RealPart<T>{0.125});
    }
  }
  return lu;
}

// One triangle of a diagonal block, with L and U stored as by getrf.
template <class T>
struct Triangle {
  const T* data;
  int64_t ld;
  int64_t order;
  bool lower;
  bool unit;

  HostWide<T> operator()(int64_t i, int64_t k) const {
    if (i == k && unit) return 1;
    if (i != k && (k < i) != lower) return 0;
    return ToWide(data[i + k * ld]);
  }
};

// Returns the condition numbers | |T^-1| |T| |_inf of T and of its transpose.
template <class T>
PreparationStats Conditions(const Triangle<T>& triangle, const Triangle<T>& inverted) {
  const int64_t order = triangle.order;
  PreparationStats largest = {0, 0};
  for (const bool transposed : {false, true}) {
    const auto row_times = [&](const Triangle<T>& t, int64_t i, const std::vector<double>& x) {
      double sum = 0;
      for (int64_t k = 0; k < order; ++k) sum += std::abs(transposed ? t(k, i) : t(i, k)) * x[k];
      return sum;
    };
    std::vector<double> sums(order);
    for (int64_t i = 0; i < order; ++i) {
      sums[i] = row_times(triangle, i, std::vector<double>(order, 1.0));
    }
    double& condition = transposed ? largest.transposed_condition : largest.condition;
    for (int64_t i = 0; i < order; ++i) {
      condition = std::max(condition, row_times(inverted, i, sums));
    }
  }
  return largest;
}

class InvertDiagonalTest : public KernelTest {
 protected:
  template <class T>
  struct Inverted {
    std::vector<T> inverse;
    PreparationStats conditions;
    ReductionScratch scratch;
  };

  template <class T>
  static Inverted<T> Invert(const std::vector<T>& lu, const Shape& shape, UnitDiagonal unit,
                            const std::vector<T>& before) {
    const auto factor = Send(lu);
    const auto inverse = Send(before);
    const auto scratch = Send<ReductionScratch>({ReductionScratch()});
    const auto report = Send<PreparationStats>({{-1, -1}});
    const int64_t lu_ld = shape.n + kLuPadding;
    const int64_t inverse_ld = shape.n + kInversePadding;
    const MatrixView<const T> view = {factor.get(), shape.n, shape.n, lu_ld};
    const auto limits = DeviceLimits::ForCurrentDevice();
    EXPECT_TRUE(limits.ok()) << limits.status();
    EXPECT_EQ(LaunchInvertDiagonal<T>(view, unit, {inverse.get(), shape.n, shape.block, inverse_ld},
                                      *limits, nullptr),
              cudaSuccess);
    EXPECT_EQ(
        LaunchBlockConditions<T>(view, unit, {inverse.get(), shape.n, shape.block, inverse_ld},
                                 scratch.get(), report.get(), nullptr),
        cudaSuccess);
    EXPECT_TRUE(SameBits(Receive(factor, lu.size()), lu));
    return {Receive(inverse, before.size()), Receive(report, 1)[0], Receive(scratch, 1)[0]};
  }

  template <class T>
  void ExpectInverses(const Shape& shape, UnitDiagonal unit);
  template <class T>
  void ExpectNotFinite(const Shape& shape, int64_t zero);
};

// Expects that the product of the triangle and its inverse is I. The tolerance is one float64
// roundoff per term and one roundoff of the element type per element of the inverse.
template <class T>
void ExpectInverse(const Triangle<T>& triangle, const Triangle<T>& inverted) {
  const int64_t order = triangle.order;
  const double rounding = std::numeric_limits<RealPart<T>>::epsilon() +
                          static_cast<double>(kIsComplex<T> ? 4 * order + 16 : order + 8) *
                              std::numeric_limits<double>::epsilon();
  for (int64_t j = 0; j < order; ++j) {
    for (int64_t i = 0; i < order; ++i) {
      HostWide<T> product = 0;
      double terms = 0;
      for (int64_t k = 0; k < order; ++k) {
        const HostWide<T> term = triangle(i, k) * inverted(k, j);
        product += term;
        terms += std::abs(term);
      }
      ASSERT_LE(std::abs(product - (i == j ? 1.0 : 0.0)), rounding * terms)
          << "element (" << i << ", " << j << ") of a " << (triangle.lower ? "lower" : "upper")
          << " triangle";
    }
  }
}

template <class T>
void InvertDiagonalTest::ExpectInverses(const Shape& shape, UnitDiagonal unit) {
  SCOPED_TRACE(::testing::Message()
               << "order " << shape.n << " in blocks of " << shape.block << ", "
               << NameOf(kDTypeOf<T>) << ", unit diagonal " << static_cast<int>(unit));
  const int64_t lu_ld = shape.n + kLuPadding;
  const int64_t inverse_ld = shape.n + kInversePadding;
  const std::vector<T> lu = Factor<T>(shape.n);
  const std::vector<T> before = RandomVector<T>(inverse_ld * shape.block, 72);
  const Inverted<T> got = Invert(lu, shape, unit, before);

  PreparationStats largest = {0, 0};
  std::vector<T> expected = before;  // with the elements outside the blocks
  int64_t largest_order = 0;
  for (int64_t begin = 0; begin < shape.n; begin += shape.block) {
    const int64_t order = std::min(shape.block, shape.n - begin);
    largest_order = std::max(largest_order, order);
    for (const bool lower : {true, false}) {
      SCOPED_TRACE(::testing::Message() << "block at " << begin);
      const bool is_unit = lower == (unit == UnitDiagonal::kL);
      const Triangle<T> triangle = {&lu[begin + begin * lu_ld], lu_ld, order, lower, is_unit};
      const Triangle<T> inverted = {&got.inverse[begin], inverse_ld, order, lower, is_unit};
      ExpectInverse(triangle, inverted);
      if (HasFatalFailure()) return;
      const PreparationStats conditions = Conditions(triangle, inverted);
      largest.condition = std::max(largest.condition, conditions.condition);
      largest.transposed_condition =
          std::max(largest.transposed_condition, conditions.transposed_condition);
    }
    for (int64_t j = 0; j < order; ++j) {
      for (int64_t i = 0; i < order; ++i) {
        expected[begin + i + j * inverse_ld] = got.inverse[begin + i + j * inverse_ld];
      }
    }
  }
  EXPECT_TRUE(SameBits(got.inverse, expected));

  // All terms are positive, so there is no cancellation.
  const double rounding =
      static_cast<double>(2 * largest_order + 4) * std::numeric_limits<double>::epsilon();
  EXPECT_NEAR(got.conditions.condition, largest.condition, rounding * largest.condition);
  EXPECT_NEAR(got.conditions.transposed_condition, largest.transposed_condition,
              rounding * largest.transposed_condition);
  // The kernel must reset the scratch for the next kernel.
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(got.scratch.least[k], ReductionScratch::kNone);
    EXPECT_EQ(got.scratch.greatest[k], 0U);
  }
  EXPECT_EQ(got.scratch.blocks_done, 0U);
}

TEST_F(InvertDiagonalTest, ComputesInversesAndConditions) {
  for (const Shape& shape : kShapes) {
    for (const UnitDiagonal unit : {UnitDiagonal::kL, UnitDiagonal::kU}) {
      ExpectInverses<double>(shape, unit);
      ExpectInverses<float>(shape, unit);
      ExpectInverses<Complex<double>>(shape, unit);
      ExpectInverses<Complex<float>>(shape, unit);
    }
  }
}

template <class T>
void InvertDiagonalTest::ExpectNotFinite(const Shape& shape, int64_t zero) {
  for (const UnitDiagonal unit : {UnitDiagonal::kL, UnitDiagonal::kU}) {
    SCOPED_TRACE(::testing::Message() << "order " << shape.n << " in blocks of " << shape.block
                                      << ", " << NameOf(kDTypeOf<T>) << ", unit diagonal "
                                      << static_cast<int>(unit) << ", zero at " << zero);
    std::vector<T> lu = Factor<T>(shape.n);
    lu[zero * (shape.n + kLuPadding + 1)] = 0;
    const int64_t inverse_ld = shape.n + kInversePadding;
    const Inverted<T> got = Invert(lu, shape, unit, std::vector<T>(inverse_ld * shape.block));
    EXPECT_FALSE(
        std::isfinite(std::abs(ToWide(got.inverse[zero + zero % shape.block * inverse_ld]))));
    EXPECT_TRUE(std::isnan(got.conditions.condition));
    EXPECT_TRUE(std::isnan(got.conditions.transposed_condition));
  }
}

// The zero pivot is in the first block, in the last block or at its end.
TEST_F(InvertDiagonalTest, ReportsNonFiniteConditionOfASingularFactor) {
  for (const int64_t zero : {0, 20, 70, 99}) {
    ExpectNotFinite<double>({100, 48}, zero);
    ExpectNotFinite<float>({100, 48}, zero);
    ExpectNotFinite<Complex<double>>({100, 48}, zero);
    ExpectNotFinite<Complex<float>>({100, 48}, zero);
  }
}

}  // namespace
}  // namespace crout::cuda::invert_diagonal_test
