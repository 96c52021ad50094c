// The GPU's matrix operations against the host's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "gmock/gmock.h"
#include "tests/gpu/gpu_testing.h"

namespace crout {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Shape {
  int64_t rows;
  int64_t cols;
};
const Shape kShapes[] = {{1, 1},  {3, 3},     {33, 33},  {1, 700}, {700, 1},
                         {2, 40}, {129, 257}, {257, 64}, {513, 2}, {1000, 1000}};

::testing::Matcher<double> Near(double expected, double tolerance = 1e-13) {
  return ::testing::DoubleNear(expected, tolerance * std::abs(expected));
}

TEST(NearTest, RejectsWhatIsFurtherAway) {
  EXPECT_THAT(1 + 2e-13, ::testing::Not(Near(1)));
  EXPECT_THAT(kNan, ::testing::Not(Near(1)));
}

TEST(SameBitsTest, TellsOneBitApart) {
  EXPECT_FALSE(SameBits<double>({1, 2}, {1, std::nextafter(2, 3)}));
  EXPECT_FALSE(SameBits<double>({0.0}, {-0.0}));
  EXPECT_TRUE(SameBits<double>({1, kNan}, {1, kNan}));
}

class OpsTest : public GpuAndHostTest {};

template <class Out>
struct Imported {
  MatrixStats stats;
  std::vector<Out> matrix;
};

template <class In, class Out>
Imported<Out> Import(Bench& bench, const std::vector<In>& values, Shape shape, Layout layout) {
  const Buffer in = bench.Put(values);
  const std::vector<Out> poison(values.size(), static_cast<Out>(-77));
  const Buffer out = bench.Put(poison);
  const PackedMatrix packed{in.data(), kDTypeOf<In>, layout, shape.rows, shape.cols};
  const AnyMatrix matrix{out.data(), kDTypeOf<Out>, shape.rows, shape.cols, shape.rows};
  EXPECT_TRUE(bench.ops().Import(packed, matrix).ok());
  const MatrixStats stats = bench.Wait().matrix;
  return {stats, bench.Get<Out>(out)};
}

void ExpectSame(const MatrixStats& actual, const MatrixStats& expected) {
  EXPECT_EQ(actual.first_non_finite, expected.first_non_finite);
  EXPECT_EQ(actual.first_overflow, expected.first_overflow);
  if (expected.first_non_finite >= 0) return;
  EXPECT_THAT(actual.norm_one, Near(expected.norm_one));
  EXPECT_THAT(actual.norm_inf, Near(expected.norm_inf));
  EXPECT_EQ(actual.max_abs, expected.max_abs);
}

template <class In, class Out>
void CheckImport(Bench& gpu, Bench& host) {
  for (const Shape shape : kShapes) {
    for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
      SCOPED_TRACE(::testing::Message()
                   << shape.rows << " x " << shape.cols << " layout " << static_cast<int>(layout));
      const auto values = RandomVector<In>(shape.rows * shape.cols, shape.rows * 1000 + shape.cols);
      const auto on_gpu = Import<In, Out>(gpu, values, shape, layout);
      const auto on_host = Import<In, Out>(host, values, shape, layout);
      ExpectSame(on_gpu.stats, on_host.stats);
      EXPECT_TRUE(SameBits(on_gpu.matrix, on_host.matrix));
    }
  }
}

TEST_F(OpsTest, ImportConvertsAndMeasures) {
  CheckImport<double, double>(*gpu_, *host_);
  CheckImport<double, float>(*gpu_, *host_);
  CheckImport<float, double>(*gpu_, *host_);
  CheckImport<float, float>(*gpu_, *host_);
}

TEST_F(OpsTest, ImportFindsTheFirstBadEntryInPayloadOrder) {
  for (const double bad : {kNan, kInf, -kInf}) {
    for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
      auto values = RandomVector<double>(300 * 200, 5);
      values[59999] = bad;
      EXPECT_EQ((Import<double, double>(*gpu_, values, {300, 200}, layout).stats.first_non_finite),
                59999);
      values[12345] = bad;
      values[40000] = -bad;
      EXPECT_EQ((Import<double, double>(*gpu_, values, {300, 200}, layout).stats.first_non_finite),
                12345);
    }
  }
}

TEST_F(OpsTest, ImportFindsTheFirstOverflowOfAConversion) {
  auto values = RandomVector<double>(100 * 100, 6);
  values[777] = -1e39;
  values[7777] = 1e300;
  const auto narrowed = Import<double, float>(*gpu_, values, {100, 100}, Layout::kRowMajor);
  EXPECT_EQ(narrowed.stats.first_overflow, 777);
  EXPECT_EQ(narrowed.stats.first_non_finite, -1);
  EXPECT_EQ(narrowed.stats.max_abs, 1e300);
  EXPECT_EQ(
      (Import<double, double>(*gpu_, values, {100, 100}, Layout::kRowMajor).stats.first_overflow),
      -1);
}

TEST_F(OpsTest, ImportInPlaceOnlyMeasures) {
  const auto values = RandomVector<double>(65 * 65, 7);
  const Buffer a = gpu_->Put(values);
  const PackedMatrix packed{a.data(), DType::kFloat64, Layout::kColumnMajor, 65, 65};
  ASSERT_TRUE(gpu_->ops().Import(packed, {a.data(), DType::kFloat64, 65, 65, 65}).ok());
  ExpectSame(gpu_->Wait().matrix,
             Import<double, double>(*host_, values, {65, 65}, Layout::kColumnMajor).stats);
  EXPECT_TRUE(SameBits(gpu_->Get<double>(a), values));
}

TEST_F(OpsTest, ExportUndoesImport) {
  for (const Shape shape : kShapes) {
    const auto values = RandomVector<float>(shape.rows * shape.cols, 8);
    const Buffer packed = gpu_->Put(values);
    const Buffer matrix = gpu_->Allocate(values.size() * sizeof(double));
    const Buffer back = gpu_->Allocate(values.size() * sizeof(float));
    const PackedMatrix layout{packed.data(), DType::kFloat32, Layout::kRowMajor, shape.rows,
                              shape.cols};
    const AnyMatrix view{matrix.data(), DType::kFloat64, shape.rows, shape.cols, shape.rows};
    ASSERT_TRUE(gpu_->ops().Import(layout, view).ok());
    ASSERT_TRUE(gpu_->ops().Export(view, layout, back.data()).ok());
    EXPECT_TRUE(SameBits(gpu_->Get<float>(back), values));
  }
}

struct Scaled {
  ScaleStats stats;
  std::vector<double> row;
  std::vector<double> col;
  std::vector<double> matrix;
};

template <class T>
Scaled Equilibrate(Bench& bench, const std::vector<T>& values, Shape shape) {
  const Buffer a = bench.Put(values);
  const Buffer row = bench.Allocate(shape.rows * sizeof(double));
  const Buffer col = bench.Allocate(shape.cols * sizeof(double));
  const Buffer out = bench.Allocate(values.size() * sizeof(double));
  const AnyMatrix view{a.data(), kDTypeOf<T>, shape.rows, shape.cols, shape.rows};
  const AnyMatrix to{out.data(), DType::kFloat64, shape.rows, shape.cols, shape.rows};
  EXPECT_TRUE(bench.ops().EquilibrationScales(view, row.as<double>(), col.as<double>()).ok());
  EXPECT_TRUE(bench.ops().CopyScaled(view, row.as<double>(), col.as<double>(), to).ok());
  const ScaleStats stats = bench.Wait().scale;
  return {stats, bench.Get<double>(row), bench.Get<double>(col), bench.Get<double>(out)};
}

template <class T>
void CheckScales(Bench& gpu, Bench& host, const std::vector<T>& values, Shape shape) {
  const Scaled on_gpu = Equilibrate(gpu, values, shape);
  const Scaled on_host = Equilibrate(host, values, shape);
  EXPECT_EQ(on_gpu.stats.zero_line, on_host.stats.zero_line);
  EXPECT_EQ(on_gpu.stats.row_condition, on_host.stats.row_condition);
  EXPECT_EQ(on_gpu.stats.col_condition, on_host.stats.col_condition);
  EXPECT_EQ(on_gpu.stats.max_abs, on_host.stats.max_abs);
  EXPECT_TRUE(SameBits(on_gpu.row, on_host.row));
  EXPECT_TRUE(SameBits(on_gpu.col, on_host.col));
  EXPECT_TRUE(SameBits(on_gpu.matrix, on_host.matrix));
}

TEST_F(OpsTest, ScalesAreTheHosts) {
  for (const Shape shape : kShapes) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols);
    auto values = RandomVector<double>(shape.rows * shape.cols, 9);
    for (int64_t k = 0; k < std::ssize(values); ++k) values[k] *= std::pow(10, 250.0 * values[k]);
    CheckScales(*gpu_, *host_, values, shape);
    CheckScales(*gpu_, *host_, RandomVector<float>(shape.rows * shape.cols, 10), shape);
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

// With the probe of `lu` as the factor of itself.
template <class T>
FactorStats Inspect(Bench& bench, const std::vector<T>& lu, int64_t n, bool unit_in_u,
                    const std::vector<int64_t>& ipiv) {
  const Buffer factor = bench.Put(lu);
  const Buffer pivots = bench.Put(ipiv);
  const Buffer work = bench.Allocate(kFactorProbeVectors * n * sizeof(double));
  const FactorProbe probe{n, 0.5, work.as<double>()};
  EXPECT_TRUE(bench.ops().StartProbe({factor.data(), kDTypeOf<T>, n, n, n}, probe).ok());
  EXPECT_TRUE(bench.ops()
                  .InspectFactor({factor.data(), kDTypeOf<T>, n, n, n}, unit_in_u,
                                 pivots.template as<int64_t>(), probe)
                  .ok());
  return bench.Wait().factor;
}

template <class T>
void CheckInspect(Bench& gpu, Bench& host) {
  for (const int64_t n : {1, 2, 31, 256, 257, 1000}) {
    std::vector<int64_t> ipiv(n);
    for (int64_t i = 0; i < n; ++i) ipiv[i] = std::min(n, i + 1 + i % 3);
    for (const bool unit_in_u : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "n=" << n << " unit_in_u=" << unit_in_u);
      const auto lu = RandomVector<T>(n * n, n);
      const FactorStats on_gpu = Inspect(gpu, lu, n, unit_in_u, ipiv);
      const FactorStats on_host = Inspect(host, lu, n, unit_in_u, ipiv);
      EXPECT_EQ(on_gpu.max_abs_u, on_host.max_abs_u);
      EXPECT_EQ(on_gpu.det_sign, on_host.det_sign);
      EXPECT_THAT(on_gpu.det_log_abs, Near(on_host.det_log_abs));
      EXPECT_NEAR(on_gpu.probe, on_host.probe, 1e-12 * on_host.probe);
      EXPECT_EQ(on_gpu.probe, Inspect(gpu, lu, n, unit_in_u, ipiv).probe);
    }
  }
}

TEST_F(OpsTest, FactorStatsAreTheHosts) {
  CheckInspect<double>(*gpu_, *host_);
  CheckInspect<float>(*gpu_, *host_);
}

TEST_F(OpsTest, FactorStatsKeepNanAndZeroPivots) {
  constexpr int64_t kN = 300;
  std::vector<int64_t> ipiv(kN);
  std::iota(ipiv.begin(), ipiv.end(), 1);
  const auto lu = RandomVector<double>(kN * kN, 12);
  for (const auto& [i, j] : {std::pair{0, 299}, {299, 0}, {150, 150}}) {
    for (const bool unit_in_u : {false, true}) {
      auto broken = lu;
      broken[i + j * kN] = kNan;
      const FactorStats stats = Inspect(*gpu_, broken, kN, unit_in_u, ipiv);
      EXPECT_TRUE(std::isnan(stats.max_abs_u));
      EXPECT_FALSE(std::isfinite(stats.probe));
    }
  }
  auto singular = lu;
  singular[17 + 17 * kN] = 0;
  const FactorStats stats = Inspect(*gpu_, singular, kN, false, ipiv);
  EXPECT_EQ(stats.det_sign, 0);
  EXPECT_EQ(stats.det_log_abs, -kInf);
  EXPECT_FALSE(std::isnan(stats.max_abs_u));
}

struct ResidualCase {
  std::vector<double> r;
  std::vector<double> w;
  double backward_error;
};

template <class T>
ResidualCase Residuals(Bench& bench, const std::vector<T>& a, Shape shape, Op op,
                       const std::vector<double>& x, const std::vector<double>& b, int64_t nrhs) {
  const int64_t x_rows = op == Op::kNone ? shape.cols : shape.rows;
  const int64_t b_rows = op == Op::kNone ? shape.rows : shape.cols;
  const Buffer a_buffer = bench.Put(a);
  const Buffer x_buffer = bench.Put(x);
  const Buffer b_buffer = bench.Put(b);
  const Buffer r_buffer = bench.Put(std::vector<double>(b.size(), kNan));
  const Buffer w_buffer = bench.Put(std::vector<double>(b.size(), kNan));
  const AnyMatrix a_view{a_buffer.data(), kDTypeOf<T>, shape.rows, shape.cols, shape.rows};
  const MatrixView<double> x_view{x_buffer.as<double>(), x_rows, nrhs, x_rows};
  const MatrixView<double> b_view{b_buffer.as<double>(), b_rows, nrhs, b_rows};
  const MatrixView<double> r_view{r_buffer.as<double>(), b_rows, nrhs, b_rows};
  const MatrixView<double> w_view{w_buffer.as<double>(), b_rows, nrhs, b_rows};
  EXPECT_TRUE(bench.ops().Residual(a_view, op, 3.0, x_view, b_view, r_view).ok());
  EXPECT_TRUE(bench.ops().AbsProduct(a_view, op, x_view, b_view, w_view).ok());
  const double backward_error = bench.Wait().residual.backward_error;
  return {bench.Get<double>(r_buffer), bench.Get<double>(w_buffer), backward_error};
}

template <class T>
void CheckResiduals(Bench& gpu, Bench& host) {
  for (const Shape shape : kShapes) {
    for (const Op op : {Op::kNone, Op::kTranspose}) {
      for (const int64_t nrhs : {1, 4, 7, 15}) {
        SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << " op "
                                          << static_cast<int>(op) << " nrhs " << nrhs);
        const int64_t x_rows = op == Op::kNone ? shape.cols : shape.rows;
        const int64_t b_rows = op == Op::kNone ? shape.rows : shape.cols;
        const auto a = RandomVector<T>(shape.rows * shape.cols, 13);
        const auto x = RandomVector<double>(x_rows * nrhs, 14);
        const auto b = RandomVector<double>(b_rows * nrhs, 15);
        const ResidualCase on_gpu = Residuals(gpu, a, shape, op, x, b, nrhs);
        const ResidualCase on_host = Residuals(host, a, shape, op, x, b, nrhs);
        const double tolerance = 1e-15 * static_cast<double>(x_rows);
        for (size_t k = 0; k < b.size(); ++k) {
          // w bounds what rounding can do to r.
          ASSERT_LE(std::abs(on_gpu.r[k] - on_host.r[k]), tolerance * on_host.w[k]) << k;
          ASSERT_THAT(on_gpu.w[k], Near(on_host.w[k])) << k;
        }
        EXPECT_THAT(on_gpu.backward_error, Near(on_host.backward_error, 1e-12));
      }
    }
  }
}

TEST_F(OpsTest, ResidualsAreTheHosts) {
  CheckResiduals<double>(*gpu_, *host_);
  CheckResiduals<float>(*gpu_, *host_);
}

TEST_F(OpsTest, BackwardErrorKeepsNan) {
  const auto a = RandomVector<double>(40 * 40, 16);
  const auto b = RandomVector<double>(40 * 3, 17);
  for (const double bad : {kNan, kInf}) {
    auto x = RandomVector<double>(40 * 3, 18);
    x[41] = bad;
    EXPECT_TRUE(std::isnan(Residuals(*gpu_, a, {40, 40}, Op::kNone, x, b, 3).backward_error));
  }
  const std::vector<double> zeros(40, 0.0);
  EXPECT_EQ(Residuals(*gpu_, a, {40, 40}, Op::kNone, zeros, zeros, 1).backward_error, 0);
}

TEST_F(OpsTest, ColumnScalesAreTheHosts) {
  constexpr int64_t kRows = 700;
  const std::vector<int> exponents = {0, 40, -1060, 990, -97, 0};
  auto in = RandomVector<double>(kRows * std::ssize(exponents), 21);
  auto row = RandomVector<double>(kRows, 22);
  for (size_t k = 0; k < in.size(); ++k) in[k] = std::ldexp(in[k], exponents[k / kRows]);
  for (double& v : row) v = std::ldexp(1.0, static_cast<int>(40 * v));
  std::fill(in.end() - kRows, in.end(), 0.0);
  const auto scales = [&](Bench& bench, bool with_rows) {
    const Buffer in_buffer = bench.Put(in);
    const Buffer row_buffer = bench.Put(row);
    const Buffer out = bench.Allocate(2 * exponents.size() * sizeof(double));
    EXPECT_TRUE(
        bench.ops()
            .ColumnScales(AsAny({in_buffer.as<double>(), kRows, std::ssize(exponents), kRows}),
                          with_rows ? row_buffer.as<double>() : nullptr, 7, out.as<double>(),
                          out.as<double>() + exponents.size())
            .ok());
    bench.Wait();
    return bench.Get<double>(out);
  };
  for (const bool with_rows : {false, true}) {
    EXPECT_TRUE(SameBits(scales(*gpu_, with_rows), scales(*host_, with_rows)));
  }
  in[5] = kNan;
  in[kRows + 5] = kInf;
  EXPECT_EQ(scales(*gpu_, false)[0], 1);
  EXPECT_TRUE(SameBits(scales(*gpu_, false), scales(*host_, false)));
}

TEST_F(OpsTest, ComponentwiseErrorsAreTheHosts) {
  constexpr int64_t kRows = 700;
  auto r = RandomVector<double>(kRows * 3, 23);
  auto w = RandomVector<double>(kRows * 3, 24);
  for (double& v : w) v = std::abs(v) + 1;
  r[0] = w[0] = 0;
  const auto error = [&](Bench& bench) {
    const Buffer r_buffer = bench.Put(r);
    const Buffer w_buffer = bench.Put(w);
    EXPECT_TRUE(bench.ops()
                    .ComponentwiseError(AsAny({r_buffer.as<double>(), kRows, 3, kRows}),
                                        {w_buffer.as<double>(), kRows, 3, kRows})
                    .ok());
    return bench.Wait().residual.componentwise_error;
  };
  EXPECT_EQ(error(*gpu_), error(*host_));
  w[1000] = 1e-310;  // guarded
  EXPECT_EQ(error(*gpu_), error(*host_));
  for (std::vector<double>* bad : {&r, &w}) {
    for (const double value : {kNan, kInf}) {
      const double kept = std::exchange((*bad)[1500], value);
      EXPECT_TRUE(std::isnan(error(*gpu_)));
      (*bad)[1500] = kept;
    }
  }
}

TEST_F(OpsTest, AddAddsWithGaps) {
  const auto d = RandomVector<double>(20 * 3, 19);
  const auto x = RandomVector<double>(32 * 3, 20);
  const Buffer d_buffer = gpu_->Put(d);
  const Buffer x_buffer = gpu_->Put(x);
  ASSERT_TRUE(
      gpu_->ops()
          .Add(AsAny({d_buffer.as<double>(), 20, 3, 20}), AsAny({x_buffer.as<double>(), 20, 3, 32}))
          .ok());
  auto expected = x;
  for (int j = 0; j < 3; ++j) {
    for (int i = 0; i < 20; ++i) expected[i + 32 * j] += d[i + 20 * j];
  }
  EXPECT_TRUE(SameBits(gpu_->Get<double>(x_buffer), expected));
}

TEST_F(OpsTest, EmptyMatricesReportZeros) {
  const Buffer some = gpu_->Put(std::vector<double>{1});
  const PackedMatrix empty{some.data(), DType::kFloat64, Layout::kRowMajor, 0, 0};
  const AnyMatrix view{some.data(), DType::kFloat64, 0, 0, 1};
  ASSERT_TRUE(gpu_->ops().Import(empty, view).ok());
  ASSERT_TRUE(gpu_->ops().EquilibrationScales(view, nullptr, nullptr).ok());
  ASSERT_TRUE(gpu_->ops().InspectFactor(view, false, nullptr, {}).ok());
  const DeviceReport& report = gpu_->Wait();
  EXPECT_EQ(report.matrix.first_non_finite, -1);
  EXPECT_EQ(report.matrix.norm_one, 0);
  EXPECT_EQ(report.scale.zero_line, 0);
  EXPECT_EQ(report.factor.det_sign, 1);
  EXPECT_EQ(report.factor.det_log_abs, 0);
}

}  // namespace
}  // namespace crout
