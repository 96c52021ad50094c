// SPDX-License-Identifier: Apache-2.0

// Tests row and column scales on a GPU against the host.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/scalar.h"
#include "tests/gpu/ops/ops_testing.h"

namespace crout::ops_scale_test {
namespace {

template <class T>
struct Scaled {
  ScaleStats stats;
  std::vector<double> row;
  std::vector<double> col;
  std::vector<WideType<T>> matrix;
};

template <class T>
Scaled<T> Equilibrate(Bench& bench, const std::vector<T>& values, Shape shape) {
  const Buffer a = bench.Put(values);
  const Buffer row = bench.Allocate(shape.rows * sizeof(double));
  const Buffer col = bench.Allocate(shape.cols * sizeof(double));
  const Buffer out = bench.Allocate(values.size() * sizeof(WideType<T>));
  const AnyMatrix view{a.data(), kDTypeOf<T>, shape.rows, shape.cols, shape.rows};
  const AnyMatrix to{out.data(), kDTypeOf<WideType<T>>, shape.rows, shape.cols, shape.rows};
  EXPECT_TRUE(bench.ops().EquilibrationScales(view, row.as<double>(), col.as<double>()).ok());
  EXPECT_TRUE(bench.ops().CopyScaled(view, row.as<double>(), col.as<double>(), to).ok());
  const ScaleStats stats = bench.Wait().scale;
  return {stats, bench.Get<double>(row), bench.Get<double>(col), bench.Get<WideType<T>>(out)};
}

template <class T>
void CheckScales(Bench& gpu, Bench& host, const std::vector<T>& values, Shape shape) {
  const Scaled<T> on_gpu = Equilibrate(gpu, values, shape);
  const Scaled<T> on_host = Equilibrate(host, values, shape);
  EXPECT_EQ(on_gpu.stats.zero_line, on_host.stats.zero_line);
  EXPECT_EQ(on_gpu.stats.row_condition, on_host.stats.row_condition);
  EXPECT_EQ(on_gpu.stats.col_condition, on_host.stats.col_condition);
  EXPECT_EQ(on_gpu.stats.max_abs, on_host.stats.max_abs);
  EXPECT_TRUE(SameBits(on_gpu.row, on_host.row));
  EXPECT_TRUE(SameBits(on_gpu.col, on_host.col));
  EXPECT_TRUE(SameBits(on_gpu.matrix, on_host.matrix));
}

TEST_F(OpsTest, MatchesTheHostsScales) {
  for (const Shape shape : kShapes) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols);
    auto values = RandomVector<double>(shape.rows * shape.cols, 9);
    for (int64_t k = 0; k < std::ssize(values); ++k) values[k] *= std::pow(10, 250.0 * values[k]);
    CheckScales(*gpu_, *host_, values, shape);
    CheckScales(*gpu_, *host_, RandomVector<float>(shape.rows * shape.cols, 10), shape);
    CheckScales(*gpu_, *host_, RandomVector<Complex64>(shape.rows * shape.cols, 10), shape);
    auto complex = RandomVector<Complex128>(shape.rows * shape.cols, 9);
    for (Complex128& v : complex) v *= std::pow(10, 250.0 * v.real());
    CheckScales(*gpu_, *host_, complex, shape);
  }
}

TEST_F(OpsTest, ScalesOfZeroLinesAreOne) {
  auto values = RandomVector<double>(50 * 50, 11);
  for (int64_t i = 0; i < 50; ++i) values[i + 50 * 7] = 0;  // column 7
  CheckScales(*gpu_, *host_, values, {50, 50});
  EXPECT_EQ(Equilibrate(*gpu_, values, {50, 50}).stats.zero_line, 50 + 8);
  for (int64_t j = 0; j < 50; ++j) values[3 + 50 * j] = values[30 + 50 * j] = 0;
  CheckScales(*gpu_, *host_, values, {50, 50});
  EXPECT_EQ(Equilibrate(*gpu_, values, {50, 50}).stats.zero_line, 4);
}

template <class T>
void CheckColumnScales(Bench& gpu, Bench& host) {
  constexpr int64_t kRows = 700;
  const std::vector<int> exponents = {0, 40, -1060, 990, -97, 0};
  auto in = RandomVector<T>(kRows * std::ssize(exponents), 21);
  auto row = RandomVector<double>(kRows, 22);
  for (size_t k = 0; k < in.size(); ++k) in[k] *= std::ldexp(1.0, exponents[k / kRows]);
  for (double& v : row) v = std::ldexp(1.0, static_cast<int>(40 * v));
  std::fill(in.end() - kRows, in.end(), 0.0);
  const auto scales = [&](Bench& bench, bool with_rows) {
    const Buffer in_buffer = bench.Put(in);
    const Buffer row_buffer = bench.Put(row);
    const Buffer out = bench.Allocate(2 * exponents.size() * sizeof(double));
    const MatrixView<T> view{in_buffer.as<T>(), kRows, std::ssize(exponents), kRows};
    EXPECT_TRUE(bench.ops()
                    .ColumnScales(view, with_rows ? row_buffer.as<double>() : nullptr, 7,
                                  out.as<double>(), out.as<double>() + exponents.size())
                    .ok());
    bench.Wait();
    return bench.Get<double>(out);
  };
  for (const bool with_rows : {false, true}) {
    EXPECT_TRUE(SameBits(scales(gpu, with_rows), scales(host, with_rows)));
  }
  in[5] = kNan;
  in[kRows + 5] = kInf;
  EXPECT_EQ(scales(gpu, false)[0], 1);
  EXPECT_TRUE(SameBits(scales(gpu, false), scales(host, false)));
}

TEST_F(OpsTest, MatchesTheHostsColumnScales) {
  CheckColumnScales<double>(*gpu_, *host_);
  CheckColumnScales<Complex128>(*gpu_, *host_);
}

}  // namespace
}  // namespace crout::ops_scale_test
