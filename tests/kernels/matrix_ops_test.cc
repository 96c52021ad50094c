// SPDX-License-Identifier: Apache-2.0

// Tests the host's MatrixOps against their definitions, below and above the size from which they
// use all cores.
#include "kernels/matrix_ops.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/host/device/host_device.h"
#include "kernels/krylov_ops.h"
#include "tests/support/ratios.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::matrix_ops_test {
namespace {

class MatrixOpsTest : public ::testing::Test {
 protected:
  AnyMatrix View(std::vector<std::byte>& bytes, DType dtype, int64_t rows, int64_t cols) {
    return {bytes.data(), dtype, rows, cols, std::max<int64_t>(1, rows)};
  }
  static MatrixView<double> View(HostMatrix& m, int64_t rows, int64_t cols) {
    return {m.data(), rows, cols, std::max<int64_t>(1, rows)};
  }

  const std::unique_ptr<Device> device_ = host::MakeDevice({});
  JobRunner runner_{*device_};
  MatrixOps& ops_ = runner_.context().ops();
  DeviceReport& report_ = runner_.context().report();
};

TEST_F(MatrixOpsTest, ImportsAndExportsEveryTypeLayoutAndShape) {
  const std::pair<int64_t, int64_t> shapes[] = {{0, 0}, {1, 1}, {3, 5}, {70, 33}, {1030, 1100}};
  for (const auto& [rows, cols] : shapes) {
    const HostMatrix a = Rounded(RandomMatrix(rows, cols, 1), DType::kFloat32);
    for (const DType from : {DType::kFloat32, DType::kFloat64}) {
      for (const DType to : {DType::kFloat32, DType::kFloat64}) {
        for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
          std::vector<std::byte> packed = Packed(a, rows, cols, from, layout);
          const PackedMatrix in{packed.data(), from, layout, rows, cols};
          std::vector<std::byte> out(a.size() * SizeOf(to));
          ASSERT_OK(ops_.Import(in, View(out, to, rows, cols)));
          EXPECT_EQ(Unpacked(out.data(), {nullptr, to, Layout::kColumnMajor, rows, cols}), a);
          EXPECT_EQ(report_.matrix.first_non_finite, -1);
          EXPECT_EQ(report_.matrix.first_overflow, -1);
          std::vector<std::byte> back(packed.size());
          ASSERT_OK(ops_.Export(View(out, to, rows, cols), in, back.data()));
          EXPECT_EQ(back, packed);
        }
      }
    }
  }
}

TEST_F(MatrixOpsTest, NormsDoNotDependOnLayoutAndSize) {
  for (const int64_t n : {1, 7, 8, 100, 513, 1100}) {
    const HostMatrix a = RandomMatrix(n, n, 1);
    for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
      std::vector<std::byte> packed = Packed(a, n, n, DType::kFloat64, layout);
      std::vector<std::byte> out(packed.size());
      ASSERT_OK(ops_.Import({packed.data(), DType::kFloat64, layout, n, n},
                            View(out, DType::kFloat64, n, n)));
      EXPECT_NEAR(report_.matrix.norm_one, NormOne(a, n), 1e-13 * NormOne(a, n));
      EXPECT_NEAR(report_.matrix.norm_inf, NormInf(a, n), 1e-13 * NormInf(a, n));
      double max = 0;
      for (double v : a) max = std::max(max, std::abs(v));
      EXPECT_EQ(report_.matrix.max_abs, max);
    }
  }
}

// The sums of rows and columns do not fit in the memory reserved for them, so they are computed in
// parts.
TEST_F(MatrixOpsTest, ComputesNormsOfLongAndOfManyLines) {
  constexpr int64_t kLong = 300000;
  for (const auto& [rows, cols] : {std::pair(kLong, int64_t{3}), {int64_t{3}, kLong}}) {
    const HostMatrix a = RandomMatrix(rows, cols, 1);
    std::vector<double> row_sum(rows);
    std::vector<double> col_sum(cols);
    for (int64_t j = 0; j < cols; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        row_sum[i] += std::abs(a[i + j * rows]);
        col_sum[j] += std::abs(a[i + j * rows]);
      }
    }
    const double norm_one = *std::max_element(col_sum.begin(), col_sum.end());
    const double norm_inf = *std::max_element(row_sum.begin(), row_sum.end());
    for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
      std::vector<std::byte> packed = Packed(a, rows, cols, DType::kFloat64, layout);
      std::vector<std::byte> out(packed.size());
      const PackedMatrix in{packed.data(), DType::kFloat64, layout, rows, cols};
      ASSERT_OK(ops_.Import(in, View(out, DType::kFloat64, rows, cols)));
      EXPECT_NEAR(report_.matrix.norm_one, norm_one, 1e-12 * norm_one);
      EXPECT_NEAR(report_.matrix.norm_inf, norm_inf, 1e-12 * norm_inf);
      packed.back() = packed[packed.size() - 2] = std::byte{0xff};  // a NaN
      ASSERT_OK(ops_.Import(in, View(out, DType::kFloat64, rows, cols)));
      EXPECT_EQ(report_.matrix.first_non_finite, rows * cols - 1);
    }
  }
}

// The maxima must have the same bits, because a series compares the largest entry of B with the
// largest entry of a residual.
TEST_F(MatrixOpsTest, FindsTheSameMaximumOfAColumnAndItsMatrix) {
  std::vector<std::complex<double>> entries = RandomComplex(300, 1, 3);
  for (std::complex<double>& entry : entries) {
    std::vector<std::byte> packed(sizeof entry);
    std::memcpy(packed.data(), &entry, sizeof entry);
    std::vector<std::byte> out(sizeof entry);
    ASSERT_OK(ops_.Import({packed.data(), DType::kComplex128, Layout::kColumnMajor, 1, 1},
                          View(out, DType::kComplex128, 1, 1)));
    double most = 0;
    ASSERT_OK(
        runner_.context().krylov_ops()->ColumnMaxAbs(View(out, DType::kComplex128, 1, 1), &most));
    EXPECT_EQ(most, report_.matrix.max_abs) << entry;
  }
}

TEST_F(MatrixOpsTest, ScalesBringEveryLineIntoRange) {
  for (const int64_t n : {1, 5, 60, 1100}) {
    HostMatrix a = RandomMatrix(n, n, 1);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) {
        a[i + j * n] *= std::pow(10.0, static_cast<double>((i * 7 + j * 11) % 200 - 100));
      }
    }
    std::vector<double> row(n);
    std::vector<double> col(n);
    ASSERT_OK(ops_.EquilibrationScales(AsAny(View(a, n, n)), row.data(), col.data()));
    EXPECT_EQ(report_.scale.zero_line, 0);
    std::vector<double> row_max(n, 0.0);
    std::vector<double> col_max(n, 0.0);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) {
        const double v = std::abs(a[i + j * n] * row[i] * col[j]);
        row_max[i] = std::max(row_max[i], v);
        col_max[j] = std::max(col_max[j], v);
      }
    }
    for (const auto& maxima : {row_max, col_max}) {
      for (const double v : maxima) {
        EXPECT_GT(v, 0.5);
        EXPECT_LE(v, 2);
      }
    }
    int exponent;
    for (const double v : row) EXPECT_EQ(std::frexp(v, &exponent), 0.5);
  }
}

TEST_F(MatrixOpsTest, ComputesScalesOfZeroLinesAndExtremes) {
  HostMatrix a = {1, 0, 2, 0};  // row 2 is zero
  std::vector<double> row(2);
  std::vector<double> col(2);
  ASSERT_OK(ops_.EquilibrationScales(AsAny(View(a, 2, 2)), row.data(), col.data()));
  EXPECT_EQ(report_.scale.zero_line, 2);
  EXPECT_EQ(row[1], 1);
  a = {1, 1, 0, 0};  // column 2 is zero
  ASSERT_OK(ops_.EquilibrationScales(AsAny(View(a, 2, 2)), row.data(), col.data()));
  EXPECT_EQ(report_.scale.zero_line, 4);
  a = {std::numeric_limits<double>::denorm_min(), 0, 0, std::numeric_limits<double>::max()};
  ASSERT_OK(ops_.EquilibrationScales(AsAny(View(a, 2, 2)), row.data(), col.data()));
  for (const double v : {row[0], row[1], col[0], col[1]}) EXPECT_TRUE(std::isnormal(v));
}

// The larger sizes are divided among several cores. Every byte must be copied, and none beyond the
// end may be written.
TEST_F(MatrixOpsTest, CopiesAnyNumberOfBytes) {
  constexpr size_t kWideBytes = size_t{8} << 20;
  for (const size_t bytes : {size_t{0}, size_t{1}, kWideBytes - 1, kWideBytes, kWideBytes + 13}) {
    std::vector<std::byte> from(bytes);
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 2654435761 >> 16);
    std::vector<std::byte> to(bytes + 64, std::byte{0xa5});
    ASSERT_OK(ops_.CopyOnDevice(from.data(), to.data(), bytes));
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << bytes;
    EXPECT_EQ(std::count(to.begin() + bytes, to.end(), std::byte{0xa5}), 64) << bytes;
  }
}

TEST_F(MatrixOpsTest, ScalesInPlaceAndConverts) {
  HostMatrix a = {1, 2, 3, 4, 5, 6};  // 2 x 3
  const std::vector<double> row = {2, 0.5};
  const std::vector<double> col = {1, 4, 8};
  const HostMatrix expected = {2, 1, 24, 8, 80, 24};
  std::vector<std::byte> single(6 * sizeof(float));
  ASSERT_OK(ops_.CopyScaled(AsAny(View(a, 2, 3)), row.data(), col.data(),
                            View(single, DType::kFloat32, 2, 3)));
  EXPECT_EQ(Unpacked(single.data(), {nullptr, DType::kFloat32, Layout::kColumnMajor, 2, 3}),
            expected);
  ASSERT_OK(ops_.CopyScaled(AsAny(View(a, 2, 3)), row.data(), col.data(), AsAny(View(a, 2, 3))));
  EXPECT_EQ(a, expected);
}

// The last two sizes need several tiles of X or of A.
TEST_F(MatrixOpsTest, ComputesResidualAndAbsProductByDefinition) {
  const std::pair<int64_t, int64_t> sizes[] = {{1, 3}, {3, 3}, {70, 3}, {70, 2100}, {2100, 2}};
  for (const auto& [n, nrhs] : sizes) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        const HostMatrix a = Rounded(RandomMatrix(n, n, 1), dtype);
        std::vector<std::byte> stored = Packed(a, n, n, dtype);
        HostMatrix x = RandomMatrix(n, nrhs, 2);
        HostMatrix b = RandomMatrix(n, nrhs, 3);
        HostMatrix r(n * nrhs);
        const double norm = op == Op::kNone ? NormInf(a, n) : NormOne(a, n);
        ASSERT_OK(ops_.Residual(View(stored, dtype, n, n), op, norm, View(x, n, nrhs),
                                View(b, n, nrhs), View(r, n, nrhs)));
        const HostMatrix product = Multiply(a, n, op, x, nrhs);
        for (size_t k = 0; k < r.size(); ++k) EXPECT_NEAR(r[k], b[k] - product[k], 1e-12);
        EXPECT_NEAR(report_.residual.backward_error, BackwardError(a, n, op, x, b, nrhs), 1e-12);

        ASSERT_OK(ops_.AbsProduct(View(stored, dtype, n, n), op, View(x, n, nrhs), View(b, n, nrhs),
                                  View(r, n, nrhs)));
        HostMatrix abs_a = a;
        HostMatrix abs_x = x;
        for (double& v : abs_a) v = std::abs(v);
        for (double& v : abs_x) v = std::abs(v);
        const HostMatrix w = Multiply(abs_a, n, op, abs_x, nrhs);
        for (size_t k = 0; k < r.size(); ++k) EXPECT_NEAR(r[k], w[k] + std::abs(b[k]), 1e-10);
      }
    }
  }
}

TEST_F(MatrixOpsTest, MultipliesWithinALargerMatrix) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int64_t k : {0, 1, 40, 700}) {
      // Computes A22 - A21 A12 in [A11 A12; A21 A22], where A11 has order k and A22 order 3.
      const int64_t n = k + 3;
      const HostMatrix a = Rounded(RandomMatrix(n, n, 1), dtype);
      std::vector<std::byte> stored = Packed(a, n, n, dtype);
      const auto block = [&](int64_t row, int64_t col, int64_t rows, int64_t cols) {
        return AnyMatrix{stored.data() + (row + col * n) * SizeOf(dtype), dtype, rows, cols, n};
      };
      ASSERT_OK(
          ops_.Multiply(-1, Op::kNone, block(k, 0, 3, k), block(0, k, k, 3), 1, block(k, k, 3, 3)));
      const HostMatrix got = Unpacked(stored.data(), {nullptr, dtype, Layout::kColumnMajor, n, n});
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < n; ++i) {
          double expected = a[i + j * n];
          for (int64_t l = 0; l < k && i >= k && j >= k; ++l) {
            expected -= a[i + l * n] * a[l + j * n];
          }
          const double bound = i >= k && j >= k ? 4 * n * UnitRoundoff(dtype) : 0;
          EXPECT_NEAR(got[i + j * n], expected, bound);
        }
      }
    }
  }
}

TEST_F(MatrixOpsTest, MultipliesWithScalarsAndTransposes) {
  using Complex = std::complex<double>;
  constexpr int64_t kRows = 5;
  constexpr int64_t kInner = 3;
  for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
    for (const int64_t cols : {1, 4}) {
      const auto a =
          op == Op::kNone ? RandomComplex(kRows, kInner, 1) : RandomComplex(kInner, kRows, 1);
      const auto b = RandomComplex(kInner, cols, 2);
      // If beta is 0, the previous content of C is ignored.
      for (const double beta : {0.0, -2.0}) {
        auto c = RandomComplex(kRows, cols, 3);
        auto expected = c;
        if (beta == 0) c.assign(c.size(), std::numeric_limits<double>::quiet_NaN());
        for (int64_t j = 0; j < cols; ++j) {
          for (int64_t i = 0; i < kRows; ++i) {
            Complex sum = beta * expected[i + j * kRows];
            for (int64_t l = 0; l < kInner; ++l) {
              const Complex at = op == Op::kNone ? a[i + l * kRows] : a[l + i * kInner];
              sum += 0.5 * (op == Op::kConjugateTranspose ? std::conj(at) : at) * b[l + j * kInner];
            }
            expected[i + j * kRows] = sum;
          }
        }
        auto left = a;
        auto right = b;
        const auto view = [](std::vector<Complex>& m, int64_t rows) {
          return AnyMatrix(
              MatrixView<Complex>{m.data(), rows, static_cast<int64_t>(m.size()) / rows, rows});
        };
        ASSERT_OK(ops_.Multiply(0.5, op, view(left, op == Op::kNone ? kRows : kInner),
                                view(right, kInner), beta, view(c, kRows)));
        for (size_t k = 0; k < c.size(); ++k) EXPECT_LE(std::abs(c[k] - expected[k]), 1e-14);
      }
    }
  }
}

TEST_F(MatrixOpsTest, SumsValuesInOrderOnOneCoreAndOnAll) {
  for (const int64_t elements : {int64_t{0}, int64_t{5}, int64_t{1} << 20}) {
    // Element e is the sum of e % 3 values, of which the last is mirrored.
    ValueMapShape shape;
    shape.elements = elements;
    shape.mirror_sign = -1;
    std::vector<int32_t> start = {0};
    std::vector<uint32_t> source;
    std::vector<float> expected;
    const auto value = [](int64_t line) { return static_cast<float>(std::sin(line)); };
    for (int64_t e = 0; e < elements; ++e) {
      double sum = 0;
      for (int64_t k = 0; k < e % 3; ++k) {
        const auto line = static_cast<uint32_t>((e * 7 + k * 1001) % 5000);
        const bool mirrored = k + 1 == e % 3;
        source.push_back(mirrored ? line | ValueMap::kMirrored : line);
        sum += mirrored ? -value(line) : value(line);
      }
      start.push_back(static_cast<int32_t>(source.size()));
      expected.push_back(static_cast<float>(sum));
    }
    shape.sources = std::ssize(source);
    shape.lines = 5000;
    std::vector<float> values;
    for (int64_t line = 0; line < shape.lines; ++line) values.push_back(value(line));
    std::vector<int32_t> block = start;
    block.insert(block.end(), source.begin(), source.end());
    ASSERT_EQ(block.size() * sizeof(int32_t), shape.bytes());
    const ValueMap map(reinterpret_cast<const std::byte*>(block.data()), shape);
    std::vector<float> out(elements, -1);
    ASSERT_OK(ops_.SumValues(map, DType::kFloat32,
                             reinterpret_cast<const std::byte*>(values.data()),
                             reinterpret_cast<std::byte*>(out.data())));
    EXPECT_EQ(out, expected);
    EXPECT_EQ(report_.values.first_not_real, -1);
  }
}

TEST_F(MatrixOpsTest, ReportsFirstValueThatIsNotReal) {
  const std::vector<int32_t> block = {0, 1, 2, 4, /*sources*/ 3, 2, 1, 0};
  std::vector<uint32_t> flagged(block.begin(), block.end());
  for (const int k : {4, 5, 7}) flagged[k] |= ValueMap::kReal;
  const ValueMap map(reinterpret_cast<const std::byte*>(flagged.data()), {4, 3, 4, 1, -1});
  std::vector<std::complex<double>> values = {{1, 0}, {2, 5}, {3, -0.0}, {4, 0}};
  std::vector<std::complex<double>> out(3);
  const auto sum = [&] {
    EXPECT_OK(ops_.SumValues(map, DType::kComplex128,
                             reinterpret_cast<const std::byte*>(values.data()),
                             reinterpret_cast<std::byte*>(out.data())));
    return report_.values.first_not_real;
  };
  EXPECT_EQ(sum(), -1);
  EXPECT_EQ(out[2], std::complex<double>(3, 5));
  values[3].imag(1);
  EXPECT_EQ(sum(), 3);
  values[0].imag(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(sum(), 0);
}

TEST_F(MatrixOpsTest, ReturnsNanResidualOfNonFiniteInput) {
  HostMatrix a = {1};
  HostMatrix r(1);
  for (const auto& [x, b] :
       {std::pair{HostMatrix{INFINITY}, HostMatrix{1}}, std::pair{HostMatrix{1}, HostMatrix{NAN}},
        std::pair{HostMatrix{NAN}, HostMatrix{NAN}}}) {
    HostMatrix x_copy = x;
    HostMatrix b_copy = b;
    ASSERT_OK(ops_.Residual(AsAny(View(a, 1, 1)), Op::kNone, 1, View(x_copy, 1, 1),
                            View(b_copy, 1, 1), View(r, 1, 1)));
    EXPECT_TRUE(std::isnan(report_.residual.backward_error));
  }
  HostMatrix zero = {0};
  ASSERT_OK(ops_.Residual(AsAny(View(zero, 1, 1)), Op::kNone, 0, View(zero, 1, 1), View(zero, 1, 1),
                          View(r, 1, 1)));
  EXPECT_EQ(report_.residual.backward_error, 0);
}

TEST_F(MatrixOpsTest, ScalesColumnsToOneMagnitude) {
  for (const int64_t rows : {1, 50, 5000}) {
    HostMatrix in = RandomMatrix(rows, 5, 1);
    const std::vector<int> exponents = {0, -1000, 1000, 3};
    for (int64_t j = 0; j < 4; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        in[i + j * rows] = std::ldexp(in[i + j * rows], exponents[j]);
      }
    }
    std::fill(in.end() - rows, in.end(), 0.0);
    const std::vector<double> row(rows, 0x1p-9);
    for (const double* scales : {static_cast<const double*>(nullptr), row.data()}) {
      std::vector<double> down(5);
      std::vector<double> up(5);
      ASSERT_OK(ops_.ColumnScales(View(in, rows, 5), scales, 7, down.data(), up.data()));
      for (int64_t j = 0; j < 5; ++j) {
        double largest = 0;
        for (int64_t i = 0; i < rows; ++i) {
          const double v = in[i + j * rows] * (scales == nullptr ? 1 : scales[i]);
          largest = std::max(largest, std::abs(v * down[j]));
        }
        EXPECT_EQ(j == 4 ? down[j] : std::ilogb(largest), j == 4 ? 1 : 7);
        EXPECT_EQ(down[j] * up[j], 1);
      }
    }
  }
}

TEST_F(MatrixOpsTest, ComputesColumnScalesOfNonFiniteAndExtremeValues) {
  HostMatrix in = {1, NAN, 1, INFINITY, 0x1p-1074, 0, 0x1p1023, 1};
  std::vector<double> down(4);
  std::vector<double> up(4);
  ASSERT_OK(ops_.ColumnScales(View(in, 2, 4), nullptr, 0, down.data(), up.data()));
  EXPECT_EQ(down, std::vector<double>({1, 1, 0x1p1022, 0x1p-1022}));
  EXPECT_EQ(up, std::vector<double>({1, 1, 0x1p-1022, 0x1p1022}));
}

TEST_F(MatrixOpsTest, ComputesComponentwiseErrorByDefinition) {
  HostMatrix r = {0.5, -2, 0, 0.25};
  HostMatrix w = {1, 8, 0, 1};
  ASSERT_OK(ops_.ComponentwiseError(View(r, 2, 2), View(w, 2, 2)));
  EXPECT_EQ(report_.residual.componentwise_error, 0.5);
  // For a component near underflow, the term that LAPACK's gerfs adds has an effect.
  r = {0, 1e-310};
  w = {1, 1e-305};
  ASSERT_OK(ops_.ComponentwiseError(View(r, 2, 1), View(w, 2, 1)));
  const double safe1 = 3 * 0x1p-1022;
  EXPECT_EQ(report_.residual.componentwise_error, (1e-310 + safe1) / (1e-305 + safe1));
  // The term is not added to a zero residual.
  r = {0, 0};
  ASSERT_OK(ops_.ComponentwiseError(View(r, 2, 1), View(w, 2, 1)));
  EXPECT_EQ(report_.residual.componentwise_error, 0);
  for (HostMatrix* bad : {&r, &w}) {
    for (const double value : {NAN, INFINITY}) {
      const double kept = std::exchange((*bad)[0], value);
      ASSERT_OK(ops_.ComponentwiseError(View(r, 2, 1), View(w, 2, 1)));
      EXPECT_TRUE(std::isnan(report_.residual.componentwise_error));
      (*bad)[0] = kept;
    }
  }
}

TEST_F(MatrixOpsTest, WideRangeResidualMatchesTheResidualOfAScaledSystem) {
  for (const int64_t n : {1, 70, 200}) {
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      HostMatrix a = RandomMatrix(n, n, 1);
      HostMatrix x = RandomMatrix(n, 3, 2);
      HostMatrix b = RandomMatrix(n, 3, 3);
      const double error = BackwardError(a, n, op, x, b, 3);
      const double componentwise = ComponentwiseError(a, n, op, x, b, 3);
      HostMatrix r(n * 3);
      for (double& v : a) v *= 0x1p1023;
      for (double& v : b) v *= 0x1p1013;
      for (double& v : x) v *= 0x1p-10;
      ASSERT_OK(ops_.WideRangeResidual(AsAny(View(a, n, n)), op, View(x, n, 3), View(b, n, 3),
                                       View(r, n, 3)));
      EXPECT_NEAR(report_.residual.backward_error, error, 1e-14 * error);
      EXPECT_NEAR(report_.residual.componentwise_error, componentwise, 1e-14 * componentwise);
      x[0] = INFINITY;
      ASSERT_OK(ops_.WideRangeResidual(AsAny(View(a, n, n)), op, View(x, n, 3), View(b, n, 3),
                                       View(r, n, 3)));
      EXPECT_TRUE(std::isnan(report_.residual.backward_error));
      EXPECT_TRUE(std::isnan(report_.residual.componentwise_error));
    }
  }
}

// A row with very large entries must not hide the errors of other rows.
TEST_F(MatrixOpsTest, WideRangeResidualShowsErrorsInBadlyScaledRows) {
  for (const double small : {1e-200, 1e-290}) {
    HostMatrix a = {1e308, 0, 0, small};
    HostMatrix x = {1, 1};
    HostMatrix b = {1e308, 2 * small};  // the second element of x is wrong
    HostMatrix r(2);
    ASSERT_OK(ops_.WideRangeResidual(AsAny(View(a, 2, 2)), Op::kNone, View(x, 2, 1), View(b, 2, 1),
                                     View(r, 2, 1)));
    EXPECT_EQ(r, HostMatrix({0, small}));
    EXPECT_NEAR(report_.residual.componentwise_error, 1.0 / 3, 1e-15);
    EXPECT_EQ(report_.residual.backward_error, 0) << "beside the norm it is nothing";
  }
}

TEST_F(MatrixOpsTest, InspectFactorFindsNanAtEveryPosition) {
  const std::vector<int64_t> ipiv = {2, 2};
  HostMatrix lu = {2, 0.5, -8, 3};
  ASSERT_OK(ops_.InspectFactor(AsAny(View(lu, 2, 2)), false, ipiv.data(), {}));
  EXPECT_EQ(report_.factor.max_abs_u, 8);
  EXPECT_EQ(report_.factor.det_sign, -1);
  EXPECT_NEAR(report_.factor.det_log_abs, std::log(6), 1e-15);
  ASSERT_OK(ops_.InspectFactor(AsAny(View(lu, 2, 2)), true, nullptr, {}));
  EXPECT_EQ(report_.factor.max_abs_u, 16);  // largest entry of diag(L) U
  EXPECT_EQ(report_.factor.det_sign, 1);
  for (size_t k = 0; k < 4; ++k) {
    HostMatrix bad = lu;
    bad[k] = NAN;
    ASSERT_OK(ops_.InspectFactor(AsAny(View(bad, 2, 2)), false, ipiv.data(), {}));
    EXPECT_TRUE(std::isnan(report_.factor.max_abs_u)) << k;
  }
}

}  // namespace
}  // namespace crout::testing::matrix_ops_test
