// SPDX-License-Identifier: Apache-2.0

// Tests residuals of systems whose terms overflow against long double on the host.
#include "kernels/cuda/ops/matrix_kernels.h"

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "kernels/host/ops/matrix_functions.h"
#include "tests/gpu/harness/kernel_test.h"
#include "tests/gpu/harness/vectors.h"

namespace crout::cuda::wide_range_residual_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct System {
  int64_t rows;
  int64_t cols;
  int64_t columns;
  Op op;
  int a_exponent;
  int x_exponent;
};

template <class V>
std::vector<V> Random(int64_t count, int seed, int exponent) {
  std::vector<V> values = RandomVector<V>(count, seed);
  for (V& v : values) v *= std::ldexp(1.0, exponent);
  return values;
}

template <class V>
struct Result {
  ResidualStats stats;
  std::vector<V> r;
};

class WideRangeResidualTest : public KernelTest {
 protected:
  // Returns the exponent of b: b is as large as A x, if the type has numbers of this size.
  static int RhsExponent(const System& system) {
    return std::min(1022, system.a_exponent + system.x_exponent);
  }

  // V is the type of the matrix and of the vectors.
  template <class V>
  static Result<V> OnGpu(const System& system, const std::vector<V>& a, const std::vector<V>& x,
                         const std::vector<V>& b) {
    const bool plain = system.op == Op::kNone;
    const int64_t height = plain ? system.rows : system.cols;
    const int64_t depth = plain ? system.cols : system.rows;
    const auto a_sent = Send(a);
    const auto x_sent = Send(x);
    const auto b_sent = Send(b);
    const auto r_sent = Send(std::vector<V>(b.size(), kNan));
    const auto scratch = Send<ReductionScratch>({ReductionScratch()});
    const auto report = Send<ResidualStats>({{-1, -1}});
    const auto view = [](const auto& sent, int64_t rows, int64_t cols) {
      return MatrixView<V>{sent.get(), rows, cols, rows};
    };
    EXPECT_EQ(LaunchWideRangeResidual(
                  view(a_sent, system.rows, system.cols), system.op,
                  view(x_sent, depth, system.columns), view(b_sent, height, system.columns),
                  view(r_sent, height, system.columns), scratch.get(), report.get(), nullptr),
              cudaSuccess);
    // The kernel must reset the scratch for the next kernel.
    const ReductionScratch left = Receive(scratch, 1)[0];
    for (const unsigned long long word : left.greatest) EXPECT_EQ(word, 0U);
    EXPECT_EQ(left.blocks_done, 0U);
    return {Receive(report, 1)[0], Receive(r_sent, b.size())};
  }

  template <class V>
  static Result<V> OnHost(const System& system, std::vector<V> a, std::vector<V> x,
                          std::vector<V> b) {
    const bool plain = system.op == Op::kNone;
    const int64_t height = plain ? system.rows : system.cols;
    const int64_t depth = plain ? system.cols : system.rows;
    Result<V> result;
    result.r.resize(b.size());
    const auto view = [](std::vector<V>& values, int64_t rows, int64_t cols) -> AnyMatrix {
      return MatrixView<V>{values.data(), rows, cols, rows};
    };
    result.stats = host::ComputeWideRangeResidual(
        1, view(a, system.rows, system.cols), system.op, view(x, depth, system.columns),
        view(b, height, system.columns), view(result.r, height, system.columns),
        [] { return false; });
    return result;
  }
};

// Compares real and imaginary parts. Inf must be equal, and finite values may differ by `error`.
template <class V>
void ExpectNear(V actual, V expected, double error) {
  if constexpr (kIsComplex<V>) {
    ExpectNear(actual.real(), expected.real(), error);
    ExpectNear(actual.imag(), expected.imag(), error);
  } else if (std::isinf(expected)) {
    EXPECT_EQ(actual, expected);
  } else {
    EXPECT_NEAR(actual, expected, error);
  }
}

template <class V>
class TypedWideRangeResidualTest : public WideRangeResidualTest {
 protected:
  void ExpectSame(const ResidualStats& actual, const ResidualStats& expected) {
    EXPECT_NEAR(actual.backward_error, expected.backward_error, 1e-12 * expected.backward_error);
    EXPECT_NEAR(actual.componentwise_error, expected.componentwise_error,
                1e-12 * expected.componentwise_error);
  }
};
using Vectors = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(TypedWideRangeResidualTest, Vectors);

TYPED_TEST(TypedWideRangeResidualTest, MatchesTheHost) {
  using V = TypeParam;
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 1}, {33, 70}, {600, 300}}) {
    for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
      for (const auto& [a_exponent, x_exponent] :
           {std::pair{0, 0}, {1023, 0}, {1023, -20}, {1000, 23}, {20, 1010}}) {
        const System system{rows, cols, 3, op, a_exponent, x_exponent};
        SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " op " << static_cast<int>(op)
                                          << " A 2^" << a_exponent << " x 2^" << x_exponent);
        const bool plain = op == Op::kNone;
        const int64_t depth = plain ? cols : rows;
        const std::vector<V> a = Random<V>(rows * cols, 91, a_exponent);
        const std::vector<V> x = Random<V>(depth * 3, 92, x_exponent);
        const std::vector<V> b =
            Random<V>((plain ? rows : cols) * 3, 93, this->RhsExponent(system));
        const Result<V> got = this->OnGpu(system, a, x, b);
        const Result<V> expected = this->OnHost(system, a, x, b);
        this->ExpectSame(got.stats, expected.stats);
        const double error =
            std::ldexp(1e-15 * static_cast<double>(depth), a_exponent + x_exponent);
        for (size_t i = 0; i < b.size(); ++i) {
          ExpectNear(got.r[i], expected.r[i], error);
        }
      }
    }
  }
}

// A row with numbers near the end of the range must not hide the errors of other rows.
TEST_F(WideRangeResidualTest, ShowsErrorsInBadlyScaledRows) {
  for (const double small : {1e-200, 1e-290}) {
    const System system{2, 2, 1, Op::kNone, 0, 0};
    // x solves the first row; its second element is wrong.
    const Result<double> got =
        OnGpu<double>(system, {1e308, 0, 0, small}, {1, 1}, {1e308, 2 * small});
    EXPECT_EQ(got.r, std::vector<double>({0, small}));
    EXPECT_NEAR(got.stats.componentwise_error, 1.0 / 3, 1e-15);
    EXPECT_EQ(got.stats.backward_error, 0) << "beside the norm it is nothing";
    // The largest entry of the row is multiplied by zero, so its other entry determines the error.
    const Result<double> other =
        OnGpu<double>(system, {1e308, 1e308, 0, small}, {0, 1}, {0, 2 * small});
    EXPECT_EQ(other.r, std::vector<double>({0, small}));
    EXPECT_NEAR(other.stats.componentwise_error, 1.0 / 3, 1e-15);
  }
}

TYPED_TEST(TypedWideRangeResidualTest, MatchesTheHostForRowsOfEveryMagnitude) {
  using V = TypeParam;
  constexpr int64_t kN = 300;
  const System system{kN, kN, 2, Op::kNone, 0, 0};
  std::vector<V> a = RandomVector<V>(kN * kN, 94);
  const std::vector<V> x = RandomVector<V>(kN * 2, 95);
  std::vector<V> b = RandomVector<V>(kN * 2, 96);
  for (int64_t i = 0; i < kN; ++i) {
    const double scale =
        std::ldexp(1.0, static_cast<int>(1023 - 7 * i));  // small rows need the guard
    for (int64_t k = 0; k < kN; ++k) a[i + k * kN] *= scale;
    for (int64_t c = 0; c < 2; ++c) b[i + c * kN] *= scale;
  }
  const Result<V> got = this->OnGpu(system, a, x, b);
  const Result<V> expected = this->OnHost(system, a, x, b);
  this->ExpectSame(got.stats, expected.stats);
  for (size_t i = 0; i < b.size(); ++i) {
    const double term = std::ldexp(1.0, 1023 - 7 * static_cast<int>(i % kN));
    ExpectNear(got.r[i], expected.r[i], 1e-15 * kN * term + 0x1p-1074);
  }
}

TYPED_TEST(TypedWideRangeResidualTest, ReturnsNanForNonFiniteColumns) {
  using V = TypeParam;
  const System system{2, 2, 2, Op::kNone, 0, 0};
  const std::vector<V> good = {1, 2, 3, 4};
  for (const double bad : {kNan, std::numeric_limits<double>::infinity()}) {
    std::vector<V> with_bad = good;
    with_bad[3] = bad;
    for (const Result<V>& got :
         {this->OnGpu(system, good, with_bad, good), this->OnGpu(system, good, good, with_bad)}) {
      EXPECT_TRUE(std::isnan(got.stats.backward_error));
      EXPECT_TRUE(std::isnan(got.stats.componentwise_error));
    }
  }
}

TEST_F(WideRangeResidualTest, ReturnsZeroErrorForZeroResidual) {
  const System system{1, 1, 1, Op::kNone, 0, 0};
  const Result<double> got = OnGpu<double>(system, {0x1p1000}, {0x1p20}, {0x1p1020});
  EXPECT_EQ(got.stats.backward_error, 0);
  EXPECT_EQ(got.stats.componentwise_error, 0);
  EXPECT_EQ(OnGpu<double>(system, {0}, {0}, {0}).stats.backward_error, 0);
}

}  // namespace
}  // namespace crout::cuda::wide_range_residual_test
