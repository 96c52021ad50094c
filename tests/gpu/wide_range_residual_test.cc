// Residuals of systems whose terms overflow: against long double on the host.
#include "kernels/cuda/ops/wide_range_residual.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/host/ops/wide_range_residual.h"
#include "tests/gpu/kernel_test.h"
#include "tests/gpu/vectors.h"

namespace crout::cuda {
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

std::vector<double> Random(int64_t count, int seed, int exponent) {
  std::vector<double> values = RandomVector<double>(count, seed);
  for (double& v : values) v = std::ldexp(v, exponent);
  return values;
}

struct Result {
  ResidualStats stats;
  std::vector<double> r;
};

class WideRangeResidualTest : public KernelTest {
 protected:
  // `b` as large as A x, or as the largest numbers.
  static int RhsExponent(const System& system) {
    return std::min(1022, system.a_exponent + system.x_exponent);
  }

  static Result OnGpu(const System& system, const std::vector<double>& a,
                      const std::vector<double>& x, const std::vector<double>& b) {
    const bool plain = system.op == Op::kNone;
    const int64_t height = plain ? system.rows : system.cols;
    const int64_t depth = plain ? system.cols : system.rows;
    const auto a_sent = Send(a);
    const auto x_sent = Send(x);
    const auto b_sent = Send(b);
    const auto r_sent = Send(std::vector<double>(b.size(), kNan));
    const auto scratch = Send<ReductionScratch>({ReductionScratch()});
    const auto report = Send<ResidualStats>({{-1, -1}});
    const AnyMatrix matrix{reinterpret_cast<std::byte*>(a_sent.get()), DType::kFloat64, system.rows,
                           system.cols, system.rows};
    EXPECT_EQ(
        LaunchWideRangeResidual(matrix, system.op, {x_sent.get(), depth, system.columns, depth},
                                {b_sent.get(), height, system.columns, height},
                                {r_sent.get(), height, system.columns, height}, scratch.get(),
                                report.get(), nullptr),
        cudaSuccess);
    // As the next kernel needs it.
    const ReductionScratch left = Receive(scratch, 1)[0];
    for (const unsigned long long word : left.greatest) EXPECT_EQ(word, 0U);
    EXPECT_EQ(left.blocks_done, 0U);
    return {Receive(report, 1)[0], Receive(r_sent, b.size())};
  }

  static Result OnHost(const System& system, std::vector<double> a, std::vector<double> x,
                       std::vector<double> b) {
    const bool plain = system.op == Op::kNone;
    const int64_t height = plain ? system.rows : system.cols;
    const int64_t depth = plain ? system.cols : system.rows;
    Result result;
    result.r.resize(b.size());
    result.stats = host::ComputeWideRangeResidual(
        1,
        AnyMatrix{reinterpret_cast<std::byte*>(a.data()), DType::kFloat64, system.rows, system.cols,
                  system.rows},
        system.op, AsAny({x.data(), depth, system.columns, depth}),
        AsAny({b.data(), height, system.columns, height}),
        AsAny({result.r.data(), height, system.columns, height}));
    return result;
  }
};

TEST_F(WideRangeResidualTest, AsOnTheHost) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 1}, {33, 70}, {600, 300}}) {
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      for (const auto& [a_exponent, x_exponent] :
           {std::pair{0, 0}, {1023, 0}, {1023, -20}, {1000, 23}, {20, 1010}}) {
        const System system{rows, cols, 3, op, a_exponent, x_exponent};
        SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " op " << static_cast<int>(op)
                                          << " A 2^" << a_exponent << " x 2^" << x_exponent);
        const bool plain = op == Op::kNone;
        const int64_t depth = plain ? cols : rows;
        const std::vector<double> a = Random(rows * cols, 91, a_exponent);
        const std::vector<double> x = Random(depth * 3, 92, x_exponent);
        const std::vector<double> b = Random((plain ? rows : cols) * 3, 93, RhsExponent(system));
        const Result got = OnGpu(system, a, x, b);
        const Result expected = OnHost(system, a, x, b);
        EXPECT_NEAR(got.stats.backward_error, expected.stats.backward_error,
                    1e-12 * expected.stats.backward_error);
        EXPECT_NEAR(got.stats.componentwise_error, expected.stats.componentwise_error,
                    1e-12 * expected.stats.componentwise_error);
        const double term = std::ldexp(1.0, std::min(a_exponent + x_exponent, 1022));
        for (size_t i = 0; i < b.size(); ++i) {
          if (std::isinf(expected.r[i])) {
            EXPECT_EQ(got.r[i], expected.r[i]);
          } else {
            ASSERT_NEAR(got.r[i], expected.r[i], 1e-15 * static_cast<double>(depth) * term);
          }
        }
      }
    }
  }
}

// Beside a row near the end of the range the others keep their own errors.
TEST_F(WideRangeResidualTest, OfRowsFarApart) {
  for (const double small : {1e-200, 1e-290}) {
    const System system{2, 2, 1, Op::kNone, 0, 0};
    // The second of x is wrong, and solves nothing but the first row.
    const Result got = OnGpu(system, {1e308, 0, 0, small}, {1, 1}, {1e308, 2 * small});
    EXPECT_EQ(got.r, std::vector<double>({0, small}));
    EXPECT_NEAR(got.stats.componentwise_error, 1.0 / 3, 1e-15);
    EXPECT_EQ(got.stats.backward_error, 0) << "beside the norm it is nothing";
    // The row's largest entry meets a zero: its other one counts.
    const Result other = OnGpu(system, {1e308, 1e308, 0, small}, {0, 1}, {0, 2 * small});
    EXPECT_EQ(other.r, std::vector<double>({0, small}));
    EXPECT_NEAR(other.stats.componentwise_error, 1.0 / 3, 1e-15);
  }
}

TEST_F(WideRangeResidualTest, OfRowsOfEverySizeAsOnTheHost) {
  constexpr int64_t kN = 300;
  const System system{kN, kN, 2, Op::kNone, 0, 0};
  std::vector<double> a = RandomVector<double>(kN * kN, 94);
  const std::vector<double> x = RandomVector<double>(kN * 2, 95);
  std::vector<double> b = RandomVector<double>(kN * 2, 96);
  for (int64_t i = 0; i < kN; ++i) {
    const auto exponent = static_cast<int>(1023 - 7 * i);  // to 2^-1070, where the guard counts
    for (int64_t k = 0; k < kN; ++k) a[i + k * kN] = std::ldexp(a[i + k * kN], exponent);
    for (int64_t c = 0; c < 2; ++c) b[i + c * kN] = std::ldexp(b[i + c * kN], exponent);
  }
  const Result got = OnGpu(system, a, x, b);
  const Result expected = OnHost(system, a, x, b);
  EXPECT_NEAR(got.stats.backward_error, expected.stats.backward_error,
              1e-12 * expected.stats.backward_error);
  EXPECT_NEAR(got.stats.componentwise_error, expected.stats.componentwise_error,
              1e-12 * expected.stats.componentwise_error);
  for (size_t i = 0; i < b.size(); ++i) {
    if (std::isinf(expected.r[i])) {
      EXPECT_EQ(got.r[i], expected.r[i]);
    } else {
      const double term = std::ldexp(1.0, 1023 - 7 * static_cast<int>(i % kN));
      ASSERT_NEAR(got.r[i], expected.r[i], 1e-15 * kN * term + 0x1p-1074) << i;
    }
  }
}

TEST_F(WideRangeResidualTest, NanWhereAColumnIsNotFinite) {
  const System system{2, 2, 2, Op::kNone, 0, 0};
  const std::vector<double> good = {1, 2, 3, 4};
  for (const double bad : {kNan, std::numeric_limits<double>::infinity()}) {
    std::vector<double> with_bad = good;
    with_bad[3] = bad;
    for (const Result& got :
         {OnGpu(system, good, with_bad, good), OnGpu(system, good, good, with_bad)}) {
      EXPECT_TRUE(std::isnan(got.stats.backward_error));
      EXPECT_TRUE(std::isnan(got.stats.componentwise_error));
    }
  }
}

TEST_F(WideRangeResidualTest, NothingLeftIsNoError) {
  const System system{1, 1, 1, Op::kNone, 0, 0};
  const Result got = OnGpu(system, {0x1p1000}, {0x1p20}, {0x1p1020});
  EXPECT_EQ(got.stats.backward_error, 0);
  EXPECT_EQ(got.stats.componentwise_error, 0);
  EXPECT_EQ(OnGpu(system, {0}, {0}, {0}).stats.backward_error, 0);
}

}  // namespace
}  // namespace crout::cuda
