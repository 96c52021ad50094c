// SPDX-License-Identifier: Apache-2.0

// Tests residuals, their scale and the backward error against float64 sums on the host.
#include "kernels/cuda/ops/matrix_kernels.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <vector>

#include "kernels/scalar.h"
#include "tests/gpu/harness/kernel_test.h"
#include "tests/gpu/harness/vectors.h"

namespace crout::cuda::residual_test {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The element type of residuals and solutions.
template <class T>
using Vector = crout::WideType<T>;

struct Shape {
  int64_t rows;
  int64_t cols;
};

class ResidualTest : public KernelTest {
 protected:
  // r of LaunchResidual and w of LaunchAbsProduct, with the padding between their columns.
  template <class T>
  struct Products {
    std::vector<Vector<T>> r;
    std::vector<double> w;
  };
  template <class T>
  struct System {
    AnyMatrix a;
    MatrixView<Vector<T>> x;
    MatrixView<Vector<T>> b;
  };
  template <class T>
  Products<T> Launch(const System<T>& on_device, Op op, const Products<T>& before, int64_t ld);
  template <class T>
  void ExpectProducts(const Shape& shape, Op op, int64_t columns);

  template <class V>
  struct Error {
    double backward_error;
    std::vector<V> r;
  };
  // Returns the results of LaunchBackwardError for matrices of `columns` contiguous columns.
  template <class V>
  static Error<V> BackwardError(double norm, const std::vector<V>& x, const std::vector<V>& b,
                                const std::vector<V>& r, int64_t columns, bool add_rhs);
};

template <class T>
ResidualTest::Products<T> ResidualTest::Launch(const System<T>& on_device, Op op,
                                               const Products<T>& before, int64_t ld) {
  const auto& [a, x, b] = on_device;
  const auto r_sent = Send(before.r);
  const auto w_sent = Send(before.w);
  EXPECT_EQ(
      LaunchResidual(a, op, x, b, MatrixView<Vector<T>>{r_sent.get(), b.rows, b.cols, ld}, nullptr),
      cudaSuccess);
  EXPECT_EQ(LaunchAbsProduct(a, op, x, b, {w_sent.get(), b.rows, b.cols, ld}, nullptr),
            cudaSuccess);
  return {Receive(r_sent, before.r.size()), Receive(w_sent, before.w.size())};
}

template <class T>
void ResidualTest::ExpectProducts(const Shape& shape, Op op, int64_t columns) {
  SCOPED_TRACE(::testing::Message()
               << shape.rows << " x " << shape.cols << " " << NameOf(kDTypeOf<T>) << " op "
               << static_cast<int>(op) << ", " << columns << " columns");
  using V = Vector<T>;
  const bool plain = op == Op::kNone;
  const int64_t rows = plain ? shape.rows : shape.cols;
  const int64_t depth = plain ? shape.cols : shape.rows;
  const int64_t a_ld = shape.rows + 2;
  const int64_t x_ld = depth + 1;
  const int64_t b_ld = rows + 3;
  const int64_t out_ld = rows + 5;
  const std::vector<T> a = RandomVector<T>(a_ld * shape.cols, 81);
  const std::vector<V> x = RandomVector<V>(x_ld * columns, 82);
  const std::vector<V> b = RandomVector<V>(b_ld * columns, 83);
  const Products<T> before = {RandomVector<V>(out_ld * columns, 84),
                              RandomVector<double>(out_ld * columns, 85)};
  const auto a_sent = Send(a);
  const auto x_sent = Send(x);
  const auto b_sent = Send(b);
  const Products<T> got = Launch<T>({MatrixView<T>{a_sent.get(), shape.rows, shape.cols, a_ld},
                                     {x_sent.get(), depth, columns, x_ld},
                                     {b_sent.get(), rows, columns, b_ld}},
                                    op, before, out_ld);

  Products<T> expected = before;  // with the padding
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      V product = 0;
      double terms = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const V stored = ToFloat64(plain ? a[i + k * a_ld] : a[k + i * a_ld]);
        const V element = op == Op::kConjugateTranspose ? Conj(stored) : stored;
        product += element * x[k + j * x_ld];
        terms += Abs1(element) * Abs1(x[k + j * x_ld]);
      }
      const V rhs = b[i + j * b_ld];
      const int64_t e = i + j * out_ld;
      // Each side has one roundoff per term.
      const double error = static_cast<double>(depth + 2) * kEpsilon * (terms + Abs1(rhs));
      ASSERT_LE(std::abs(got.r[e] - (rhs - product)), error) << "row " << i << " column " << j;
      ASSERT_NEAR(got.w[e], Abs1(rhs) + terms, error) << "row " << i << " column " << j;
      expected.r[e] = got.r[e];
      expected.w[e] = got.w[e];
    }
  }
  EXPECT_TRUE(SameBits(got.r, expected.r));
  EXPECT_TRUE(SameBits(got.w, expected.w));
}

TEST_F(ResidualTest, MatchesTheHostsProducts) {
  for (const Shape& shape :
       {Shape{1, 1}, Shape{32, 8}, Shape{33, 70}, Shape{300, 20}, Shape{7, 600}}) {
    for (const int64_t columns : {1, 4, 7, 10, 33}) {
      for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
        ExpectProducts<double>(shape, op, columns);
        ExpectProducts<float>(shape, op, columns);
        ExpectProducts<std::complex<double>>(shape, op, columns);
        ExpectProducts<std::complex<float>>(shape, op, columns);
      }
    }
  }
}

template <class V>
ResidualTest::Error<V> ResidualTest::BackwardError(double norm, const std::vector<V>& x,
                                                   const std::vector<V>& b, const std::vector<V>& r,
                                                   int64_t columns, bool add_rhs) {
  const int64_t each = std::max<int64_t>(1, columns);
  const auto x_sent = Send(x);
  const auto b_sent = Send(b);
  const auto r_sent = Send(r);
  const auto view = [&](const auto& sent, const std::vector<V>& values) {
    const int64_t rows = std::ssize(values) / each;
    return MatrixView<V>{sent.get(), rows, columns, std::max<int64_t>(1, rows)};
  };
  const auto scratch = Send<ReductionScratch>({ReductionScratch()});
  const auto report = Send<ResidualStats>({{-1}});
  EXPECT_EQ(LaunchBackwardError(norm, view(x_sent, x), view(b_sent, b), view(r_sent, r), add_rhs,
                                scratch.get(), report.get(), nullptr),
            cudaSuccess);
  // The kernel must reset the scratch for the next kernel.
  const ReductionScratch left = Receive(scratch, 1)[0];
  EXPECT_EQ(left.greatest[0], 0U);
  EXPECT_EQ(left.blocks_done, 0U);
  return {Receive(report, 1)[0].backward_error, Receive(r_sent, r.size())};
}

template <class V>
double Largest(const std::vector<V>& values, int64_t begin, int64_t count) {
  double largest = 0;
  for (int64_t i = begin; i < begin + count; ++i) largest = std::max(largest, std::abs(values[i]));
  return largest;
}

template <class V>
class BackwardErrorTest : public ResidualTest {};
using Vectors = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(BackwardErrorTest, Vectors);

// The numbers of rows are below and above the number that a block of threads reads at once. op(A)
// need not be square.
TYPED_TEST(BackwardErrorTest, MatchesTheHost) {
  using V = TypeParam;
  for (const Shape& shape : {Shape{1, 1}, Shape{33, 20}, Shape{300, 400}, Shape{2500, 2500}}) {
    for (const int64_t columns : {1, 3, 10}) {
      for (const bool add_rhs : {false, true}) {
        SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << ", " << columns
                                          << " columns, add_rhs " << add_rhs);
        const std::vector<V> x = RandomVector<V>(shape.cols * columns, 85);
        const std::vector<V> b = RandomVector<V>(shape.rows * columns, 86);
        std::vector<V> r = RandomVector<V>(shape.rows * columns, 87);
        const auto got = this->BackwardError(3, x, b, r, columns, add_rhs);
        if (add_rhs) {
          for (size_t i = 0; i < r.size(); ++i) r[i] += b[i];
        }
        EXPECT_TRUE(SameBits(got.r, r));
        double largest = 0;
        for (int64_t j = 0; j < columns; ++j) {
          largest = std::max(largest, Largest(r, j * shape.rows, shape.rows) /
                                          (3 * Largest(x, j * shape.cols, shape.cols) +
                                           Largest(b, j * shape.rows, shape.rows)));
        }
        EXPECT_NEAR(got.backward_error, largest, 4 * kEpsilon * largest);
      }
    }
  }
}

TYPED_TEST(BackwardErrorTest, HandlesSpecialNumbers) {
  using V = TypeParam;
  const auto error = [](double norm, const std::vector<V>& x, const std::vector<V>& b,
                        const std::vector<V>& r, int64_t columns, bool add_rhs) {
    return TestFixture::BackwardError(norm, x, b, r, columns, add_rhs).backward_error;
  };
  // The error of a zero residual is zero for any denominator.
  EXPECT_EQ(error(0, {0, 0}, {0, 0}, {0, 0}, 1, false), 0);
  EXPECT_EQ(error(0, {0, 0}, {0, 0}, {0, 0}, 1, true), 0);
  EXPECT_EQ(error(3, {1}, {1}, {1}, 0, false), 0);
  // Only the product of the norms overflows.
  EXPECT_NEAR(error(1e200, {1e200}, {1}, {1e300}, 1, false), 1e-100, 1e-114);
  // One element of the second of three columns is not finite.
  for (const double bad : {kNan, kInf, -kInf}) {
    const std::vector<V> good = {1, 2, 3, 4, 5, 6};
    std::vector<V> with_bad = good;
    with_bad[2] = bad;
    EXPECT_TRUE(std::isnan(error(3, with_bad, good, good, 3, false)));
    EXPECT_TRUE(std::isnan(error(3, good, with_bad, good, 3, false)));
    EXPECT_TRUE(std::isnan(error(3, good, good, with_bad, 3, false)));
    EXPECT_TRUE(std::isnan(error(3, good, good, with_bad, 3, true)));
    EXPECT_TRUE(std::isnan(error(bad, good, good, good, 3, false)));
  }
}

}  // namespace
}  // namespace crout::cuda::residual_test
