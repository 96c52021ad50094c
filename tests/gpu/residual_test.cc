// Residuals, their scale and the backward error: against sums in float64 on the host.
#include "kernels/cuda/ops/residual.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "tests/gpu/kernel_test.h"
#include "tests/gpu/vectors.h"

namespace crout::cuda {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Shape {
  int64_t rows;
  int64_t cols;
};

class ResidualTest : public KernelTest {
 protected:
  template <class T>
  void ExpectProduct(const Shape& shape, Op op, int64_t columns, ProductKind kind);

  struct Error {
    double backward_error;
    std::vector<double> r;
  };
  // Columns one behind the other.
  static Error BackwardError(double norm, const std::vector<double>& x,
                             const std::vector<double>& b, const std::vector<double>& r,
                             int64_t columns, bool add_rhs);
};

template <class T>
void ResidualTest::ExpectProduct(const Shape& shape, Op op, int64_t columns, ProductKind kind) {
  SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << " float"
                                    << 8 * sizeof(T) << " op " << static_cast<int>(op) << ", "
                                    << columns << " columns, kind " << static_cast<int>(kind));
  const bool plain = op == Op::kNone;
  const int64_t rows = plain ? shape.rows : shape.cols;
  const int64_t depth = plain ? shape.cols : shape.rows;
  const int64_t a_ld = shape.rows + 2;
  const int64_t x_ld = depth + 1;
  const int64_t b_ld = rows + 3;
  const int64_t w_ld = rows + 5;
  const std::vector<T> a = RandomVector<T>(a_ld * shape.cols, 81);
  const std::vector<double> x = RandomVector<double>(x_ld * columns, 82);
  const std::vector<double> b = RandomVector<double>(b_ld * columns, 83);
  const std::vector<double> before = RandomVector<double>(w_ld * columns, 84);
  const auto a_sent = Send(a);
  const auto x_sent = Send(x);
  const auto b_sent = Send(b);
  const auto w_sent = Send(before);
  ASSERT_EQ(
      LaunchProduct(
          kind,
          {reinterpret_cast<std::byte*>(a_sent.get()), kDTypeOf<T>, shape.rows, shape.cols, a_ld},
          op, {x_sent.get(), depth, columns, x_ld}, {b_sent.get(), rows, columns, b_ld},
          {w_sent.get(), rows, columns, w_ld}, nullptr),
      cudaSuccess);
  const std::vector<double> got = Receive(w_sent, before.size());

  std::vector<double> expected = before;  // between the columns
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      double product = 0;
      double terms = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const double term = double{plain ? a[i + k * a_ld] : a[k + i * a_ld]} * x[k + j * x_ld];
        product += term;
        terms += std::abs(term);
      }
      const double rhs = b[i + j * b_ld];
      const double truth = kind == ProductKind::kResidual ? rhs - product : std::abs(rhs) + terms;
      const int64_t e = i + j * w_ld;
      // A rounding for each term, here and there.
      ASSERT_NEAR(got[e], truth,
                  static_cast<double>(depth + 2) * kEpsilon * (terms + std::abs(rhs)))
          << "row " << i << " of column " << j;
      expected[e] = got[e];
    }
  }
  EXPECT_TRUE(SameBits(got, expected));
}

TEST_F(ResidualTest, ProductsAsOnTheHost) {
  for (const Shape& shape :
       {Shape{1, 1}, Shape{32, 8}, Shape{33, 70}, Shape{300, 20}, Shape{7, 600}}) {
    for (const int64_t columns : {1, 4, 7, 10, 33}) {
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        for (const ProductKind kind : {ProductKind::kResidual, ProductKind::kAbsolute}) {
          ExpectProduct<double>(shape, op, columns, kind);
          ExpectProduct<float>(shape, op, columns, kind);
        }
      }
    }
  }
}

ResidualTest::Error ResidualTest::BackwardError(double norm, const std::vector<double>& x,
                                                const std::vector<double>& b,
                                                const std::vector<double>& r, int64_t columns,
                                                bool add_rhs) {
  const int64_t each = std::max<int64_t>(1, columns);
  const int64_t x_rows = static_cast<int64_t>(x.size()) / each;
  const int64_t b_rows = static_cast<int64_t>(b.size()) / each;
  const auto x_sent = Send(x);
  const auto b_sent = Send(b);
  const auto r_sent = Send(r);
  const auto scratch = Send<ReductionScratch>({ReductionScratch()});
  const auto report = Send<ResidualStats>({{-1}});
  EXPECT_EQ(LaunchBackwardError(norm, {x_sent.get(), x_rows, columns, std::max<int64_t>(1, x_rows)},
                                {b_sent.get(), b_rows, columns, std::max<int64_t>(1, b_rows)},
                                {r_sent.get(), b_rows, columns, std::max<int64_t>(1, b_rows)},
                                add_rhs, scratch.get(), report.get(), nullptr),
            cudaSuccess);
  // As the next kernel needs it.
  const ReductionScratch left = Receive(scratch, 1)[0];
  EXPECT_EQ(left.greatest[0], 0U);
  EXPECT_EQ(left.blocks_done, 0U);
  return {Receive(report, 1)[0].backward_error, Receive(r_sent, r.size())};
}

double Largest(const std::vector<double>& values, int64_t begin, int64_t count) {
  double largest = 0;
  for (int64_t i = begin; i < begin + count; ++i) largest = std::max(largest, std::abs(values[i]));
  return largest;
}

// Heights below and above what a block of threads reads at once; op(A) need not be square.
TEST_F(ResidualTest, BackwardErrorsAsOnTheHost) {
  for (const Shape& shape : {Shape{1, 1}, Shape{33, 20}, Shape{300, 400}, Shape{2500, 2500}}) {
    for (const int64_t columns : {1, 3, 10}) {
      for (const bool add_rhs : {false, true}) {
        SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << ", " << columns
                                          << " columns, add_rhs " << add_rhs);
        const std::vector<double> x = RandomVector<double>(shape.cols * columns, 85);
        const std::vector<double> b = RandomVector<double>(shape.rows * columns, 86);
        std::vector<double> r = RandomVector<double>(shape.rows * columns, 87);
        const Error got = BackwardError(3, x, b, r, columns, add_rhs);
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

TEST_F(ResidualTest, BackwardErrorsOfSpecialNumbers) {
  // Nothing left is no error, whatever it is divided by.
  EXPECT_EQ(BackwardError(0, {0, 0}, {0, 0}, {0, 0}, 1, false).backward_error, 0);
  EXPECT_EQ(BackwardError(0, {0, 0}, {0, 0}, {0, 0}, 1, true).backward_error, 0);
  EXPECT_EQ(BackwardError(3, {1}, {1}, {1}, 0, false).backward_error, 0);
  // Only their product overflows.
  EXPECT_NEAR(BackwardError(1e200, {1e200}, {1}, {1e300}, 1, false).backward_error, 1e-100, 1e-114);
  // A bad column among good ones, a bad element among larger good ones.
  for (const double bad : {kNan, kInf, -kInf}) {
    const std::vector<double> good = {1, 2, 3, 4, 5, 6};
    std::vector<double> with_bad = good;
    with_bad[2] = bad;
    EXPECT_TRUE(std::isnan(BackwardError(3, with_bad, good, good, 3, false).backward_error));
    EXPECT_TRUE(std::isnan(BackwardError(3, good, with_bad, good, 3, false).backward_error));
    EXPECT_TRUE(std::isnan(BackwardError(3, good, good, with_bad, 3, false).backward_error));
    EXPECT_TRUE(std::isnan(BackwardError(3, good, good, with_bad, 3, true).backward_error));
    EXPECT_TRUE(std::isnan(BackwardError(bad, good, good, good, 3, false).backward_error));
  }
}

}  // namespace
}  // namespace crout::cuda
