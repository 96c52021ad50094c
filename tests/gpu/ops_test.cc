// The GPU's matrix operations against the host's.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "gmock/gmock.h"
#include "kernels/scalar.h"
#include "tests/gpu/gpu_testing.h"

namespace crout {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

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
  // A real form of a complex matrix has twice its columns.
  const int64_t cols = kIsComplex<In> && !kIsComplex<Out> ? 2 * shape.cols : shape.cols;
  const std::vector<Out> poison(shape.rows * cols, static_cast<Out>(-77));
  const Buffer out = bench.Put(poison);
  const PackedMatrix packed{in.data(), kDTypeOf<In>, layout, shape.rows, shape.cols};
  const AnyMatrix matrix{out.data(), kDTypeOf<Out>, shape.rows, cols, shape.rows};
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
  // Moduli of complex numbers have roundings.
  EXPECT_THAT(actual.max_abs, Near(expected.max_abs, 1e-15));
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
  CheckImport<Complex128, Complex128>(*gpu_, *host_);
  CheckImport<Complex128, Complex64>(*gpu_, *host_);
  CheckImport<Complex64, Complex128>(*gpu_, *host_);
  CheckImport<Complex64, Complex64>(*gpu_, *host_);
}

TEST_F(OpsTest, ImportMakesComplexOfRealAndRealOfComplex) {
  CheckImport<double, Complex128>(*gpu_, *host_);
  CheckImport<float, Complex128>(*gpu_, *host_);
  CheckImport<Complex128, double>(*gpu_, *host_);
  CheckImport<Complex64, double>(*gpu_, *host_);
}

TEST_F(OpsTest, ImportFindsBadPartsOfComplexNumbers) {
  for (const Complex128 bad : {Complex128(kNan, 0), Complex128(0, kInf), Complex128(kInf, kNan)}) {
    auto values = RandomVector<Complex128>(100 * 70, 5);
    values[4321] = bad;
    EXPECT_EQ((Import<Complex128, Complex128>(*gpu_, values, {100, 70}, Layout::kRowMajor)
                   .stats.first_non_finite),
              4321);
  }
  // A modulus, and a sum of moduli, beyond the range of the parts is neither.
  auto values = RandomVector<Complex128>(100 * 70, 6);
  values[1234] = {0x1.8p1023, 0x1.8p1023};
  const auto large =
      Import<Complex128, Complex128>(*gpu_, values, {100, 70}, Layout::kColumnMajor).stats;
  EXPECT_EQ(large.first_non_finite, -1);
  EXPECT_EQ(large.norm_one, kInf);
  values[1234] = {3e38, 3e38};
  values[2345] = {0, -1e39};
  EXPECT_EQ((Import<Complex128, Complex64>(*gpu_, values, {100, 70}, Layout::kColumnMajor)
                 .stats.first_overflow),
            2345);
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

// Through `between`, wide enough; with twice the columns where a real one takes complex numbers.
template <class T>
void CheckRoundtrip(Bench& gpu, DType between) {
  const int parts = kIsComplex<T> && !IsComplex(between) ? 2 : 1;
  for (const Shape shape : kShapes) {
    for (const Layout order : {Layout::kColumnMajor, Layout::kRowMajor}) {
      SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << " layout "
                                        << static_cast<int>(order) << " " << NameOf(between));
      const auto values = RandomVector<T>(shape.rows * shape.cols, 8);
      const Buffer packed = gpu.Put(values);
      const Buffer matrix = gpu.Allocate(parts * values.size() * SizeOf(between));
      const Buffer back = gpu.Allocate(values.size() * sizeof(T));
      const PackedMatrix layout{packed.data(), kDTypeOf<T>, order, shape.rows, shape.cols};
      const AnyMatrix view{matrix.data(), between, shape.rows, parts * shape.cols, shape.rows};
      ASSERT_TRUE(gpu.ops().Import(layout, view).ok());
      ASSERT_TRUE(gpu.ops().Export(view, layout, back.data()).ok());
      EXPECT_TRUE(SameBits(gpu.Get<T>(back), values));
    }
  }
}

TEST_F(OpsTest, ExportUndoesImport) {
  CheckRoundtrip<float>(*gpu_, DType::kFloat64);
  CheckRoundtrip<Complex64>(*gpu_, DType::kComplex128);
  CheckRoundtrip<Complex64>(*gpu_, DType::kFloat64);
  CheckRoundtrip<Complex128>(*gpu_, DType::kFloat64);
}

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

TEST_F(OpsTest, ScalesAreTheHosts) {
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

// With the probe of `lu` as the factor of itself.
template <class T>
FactorStats Inspect(Bench& bench, const std::vector<T>& lu, int64_t n, bool unit_in_u,
                    const std::vector<int64_t>& ipiv) {
  const Buffer factor = bench.Put(lu);
  const Buffer pivots = bench.Put(ipiv);
  const Buffer work = bench.Allocate(FactorProbeVectors(kDTypeOf<T>) * n * sizeof(double));
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
      if constexpr (kIsComplex<T>) {
        EXPECT_THAT(on_gpu.max_abs_u, Near(on_host.max_abs_u, 1e-15));
        EXPECT_NEAR(on_gpu.det_sign, on_host.det_sign, 1e-13);
        EXPECT_NEAR(on_gpu.det_sign_imaginary, on_host.det_sign_imaginary, 1e-13);
      } else {
        EXPECT_EQ(on_gpu.max_abs_u, on_host.max_abs_u);
        EXPECT_EQ(on_gpu.det_sign, on_host.det_sign);
        EXPECT_EQ(on_gpu.det_sign_imaginary, 0);
      }
      EXPECT_THAT(on_gpu.det_log_abs, Near(on_host.det_log_abs));
      EXPECT_NEAR(on_gpu.probe, on_host.probe, 1e-12 * on_host.probe);
      EXPECT_EQ(on_gpu.probe, Inspect(gpu, lu, n, unit_in_u, ipiv).probe);
    }
  }
}

TEST_F(OpsTest, FactorStatsAreTheHosts) {
  CheckInspect<double>(*gpu_, *host_);
  CheckInspect<Complex128>(*gpu_, *host_);
  CheckInspect<Complex64>(*gpu_, *host_);
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

template <class T>
struct ResidualCase {
  std::vector<WideType<T>> r;
  std::vector<double> w;
  double backward_error;
};

template <class T>
ResidualCase<T> Residuals(Bench& bench, const std::vector<T>& a, Shape shape, Op op,
                          const std::vector<WideType<T>>& x, const std::vector<WideType<T>>& b,
                          int64_t nrhs) {
  using V = WideType<T>;
  const int64_t x_rows = op == Op::kNone ? shape.cols : shape.rows;
  const int64_t b_rows = op == Op::kNone ? shape.rows : shape.cols;
  const Buffer a_buffer = bench.Put(a);
  const Buffer x_buffer = bench.Put(x);
  const Buffer b_buffer = bench.Put(b);
  const Buffer r_buffer = bench.Put(std::vector<V>(b.size(), kNan));
  const Buffer w_buffer = bench.Put(std::vector<double>(b.size(), kNan));
  const AnyMatrix a_view{a_buffer.data(), kDTypeOf<T>, shape.rows, shape.cols, shape.rows};
  const MatrixView<V> x_view{x_buffer.as<V>(), x_rows, nrhs, x_rows};
  const MatrixView<V> b_view{b_buffer.as<V>(), b_rows, nrhs, b_rows};
  const MatrixView<V> r_view{r_buffer.as<V>(), b_rows, nrhs, b_rows};
  const MatrixView<double> w_view{w_buffer.as<double>(), b_rows, nrhs, b_rows};
  EXPECT_TRUE(bench.ops().Residual(a_view, op, 3.0, x_view, b_view, r_view).ok());
  EXPECT_TRUE(bench.ops().AbsProduct(a_view, op, x_view, b_view, w_view).ok());
  const double backward_error = bench.Wait().residual.backward_error;
  return {bench.Get<V>(r_buffer), bench.Get<double>(w_buffer), backward_error};
}

template <class T>
void CheckResiduals(Bench& gpu, Bench& host) {
  for (const Shape shape : kShapes) {
    for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
      for (const int64_t nrhs : {1, 4, 7, 15}) {
        SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols << " op "
                                          << static_cast<int>(op) << " nrhs " << nrhs);
        const int64_t x_rows = op == Op::kNone ? shape.cols : shape.rows;
        const int64_t b_rows = op == Op::kNone ? shape.rows : shape.cols;
        const auto a = RandomVector<T>(shape.rows * shape.cols, 13);
        const auto x = RandomVector<WideType<T>>(x_rows * nrhs, 14);
        const auto b = RandomVector<WideType<T>>(b_rows * nrhs, 15);
        const ResidualCase<T> on_gpu = Residuals(gpu, a, shape, op, x, b, nrhs);
        const ResidualCase<T> on_host = Residuals(host, a, shape, op, x, b, nrhs);
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
  CheckResiduals<Complex128>(*gpu_, *host_);
  CheckResiduals<Complex64>(*gpu_, *host_);
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

TEST_F(OpsTest, ColumnScalesAreTheHosts) {
  CheckColumnScales<double>(*gpu_, *host_);
  CheckColumnScales<Complex128>(*gpu_, *host_);
}

template <class T>
void CheckComponentwiseErrors(Bench& gpu, Bench& host) {
  constexpr int64_t kRows = 700;
  auto r = RandomVector<T>(kRows * 3, 23);
  auto w = RandomVector<double>(kRows * 3, 24);
  for (double& v : w) v = std::abs(v) + 1;
  r[0] = 0;
  w[0] = 0;
  const auto error = [&](Bench& bench) {
    const Buffer r_buffer = bench.Put(r);
    const Buffer w_buffer = bench.Put(w);
    EXPECT_TRUE(bench.ops()
                    .ComponentwiseError(MatrixView<T>{r_buffer.as<T>(), kRows, 3, kRows},
                                        {w_buffer.as<double>(), kRows, 3, kRows})
                    .ok());
    return bench.Wait().residual.componentwise_error;
  };
  EXPECT_EQ(error(gpu), error(host));
  w[1000] = 1e-310;  // guarded
  EXPECT_EQ(error(gpu), error(host));
  const auto expect_nan = [&](auto& values) {
    for (const double value : {kNan, kInf}) {
      const auto kept = std::exchange(values[1500], value);
      EXPECT_TRUE(std::isnan(error(gpu)));
      values[1500] = kept;
    }
  };
  expect_nan(r);
  expect_nan(w);
}

TEST_F(OpsTest, ComponentwiseErrorsAreTheHosts) {
  CheckComponentwiseErrors<double>(*gpu_, *host_);
  CheckComponentwiseErrors<Complex128>(*gpu_, *host_);
}

template <class T>
void CheckAdd(Bench& gpu) {
  const auto d = RandomVector<T>(20 * 3, 19);
  const auto x = RandomVector<T>(32 * 3, 20);
  const Buffer d_buffer = gpu.Put(d);
  const Buffer x_buffer = gpu.Put(x);
  const MatrixView<T> from{d_buffer.as<T>(), 20, 3, 20};
  const MatrixView<T> to{x_buffer.as<T>(), 20, 3, 32};
  ASSERT_TRUE(gpu.ops().Add(from, to).ok());
  auto expected = x;
  for (int j = 0; j < 3; ++j) {
    for (int i = 0; i < 20; ++i) expected[i + 32 * j] += d[i + 20 * j];
  }
  EXPECT_TRUE(SameBits(gpu.Get<T>(x_buffer), expected));
}

TEST_F(OpsTest, AddAddsWithGaps) {
  CheckAdd<double>(*gpu_);
  CheckAdd<Complex128>(*gpu_);
}

// c := beta c - op(a) b of a block of each.
template <class T>
void CheckMultiply(Bench& gpu, Bench& host, Op op, double beta) {
  constexpr int64_t kLd = 70;
  const auto all = RandomVector<T>(3 * kLd * 64, 25);
  const auto product = [&](Bench& bench) {
    const Buffer memory = bench.Put(all);
    T* const m = memory.as<T>();
    const MatrixView<T> a{m, op == Op::kNone ? 64 : 33, op == Op::kNone ? 33 : 64, kLd};
    const MatrixView<T> b{m + kLd * 64, 33, 20, kLd};
    const MatrixView<T> c{m + 2 * kLd * 64, 64, 20, kLd};
    EXPECT_TRUE(bench.ops().Multiply(-1, op, a, b, beta, c).ok());
    bench.Wait();
    return bench.Get<T>(memory);
  };
  const auto on_gpu = product(gpu);
  const auto on_host = product(host);
  const double tolerance = 100 * UnitRoundoff(kDTypeOf<T>);
  for (size_t k = 0; k < all.size(); ++k) {
    ASSERT_LE(std::abs(on_gpu[k] - on_host[k]), tolerance) << k;
  }
}

TEST_F(OpsTest, ProductsInEveryType) {
  for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
    for (const double beta : {0.0, 1.0}) {
      CheckMultiply<float>(*gpu_, *host_, op, beta);
      CheckMultiply<double>(*gpu_, *host_, op, beta);
      CheckMultiply<Complex64>(*gpu_, *host_, op, beta);
      CheckMultiply<Complex128>(*gpu_, *host_, op, beta);
    }
  }
}

// a with gaps, of which some entries get new values; two of them are no entries, one has two
// values.
template <class T>
void CheckSetEntries(Bench& gpu) {
  constexpr int64_t kRows = 300;
  constexpr int64_t kCols = 200;
  constexpr int64_t kLd = 310;
  auto expected = RandomVector<T>(kLd * kCols, 61);
  const Buffer memory = gpu.Put(expected);
  const MatrixView<T> a{memory.as<T>(), kRows, kCols, kLd};
  const auto set = [&](std::vector<T> values, std::vector<int32_t> rows,
                       std::vector<int32_t> cols) {
    std::vector<std::byte> block;
    const auto append = [&](std::span<const std::byte> bytes) {
      block.insert(block.end(), bytes.begin(), bytes.end());
    };
    append(std::as_bytes(std::span(values)));
    append(std::as_bytes(std::span(rows)));
    append(std::as_bytes(std::span(cols)));
    const Buffer arrived = gpu.Put(block);
    const EntryList entries(arrived.data(), kDTypeOf<T>, static_cast<int64_t>(values.size()));
    EXPECT_TRUE(gpu.ops().SetEntries(entries, a).ok());
    gpu.Wait();
    return gpu.context().report().entries;
  };
  constexpr int kCount = 1000;
  const auto values = RandomVector<T>(kCount, 62);
  std::vector<int32_t> rows;
  std::vector<int32_t> cols;
  for (int k = 0; k < kCount; ++k) {
    const int64_t at = k * int64_t{59} % (kRows * kCols);
    rows.push_back(static_cast<int32_t>(at % kRows));
    cols.push_back(static_cast<int32_t>(at / kRows));
    expected[rows[k] + cols[k] * kLd] = values[k];
  }
  EntryStats stats = set(values, rows, cols);
  EXPECT_EQ(stats.first_outside, -1);
  EXPECT_EQ(stats.first_contradicted, -1);
  EXPECT_TRUE(SameBits(gpu.Get<T>(memory), expected));

  rows[700] = kRows;
  cols[800] = -1;
  stats = set(values, rows, cols);
  EXPECT_EQ(stats.first_outside, 700);
  EXPECT_EQ(stats.first_contradicted, -1);
  EXPECT_TRUE(SameBits(gpu.Get<T>(memory), expected));

  const std::vector<T> two = {values[0], values[1]};
  stats = set(two, {5, 5}, {6, 6});
  EXPECT_EQ(stats.first_outside, -1);
  EXPECT_GE(stats.first_contradicted, 0);
  EXPECT_EQ(set({values[0], values[0]}, {5, 5}, {6, 6}).first_contradicted, -1);
}

TEST_F(OpsTest, EntriesAreSetInEveryType) {
  CheckSetEntries<float>(*gpu_);
  CheckSetEntries<double>(*gpu_);
  CheckSetEntries<Complex64>(*gpu_);
  CheckSetEntries<Complex128>(*gpu_);
}

// Elements of 0 to 3 values, some mirrored, one of 5000: on the GPU what is on the host.
template <class T>
void CheckSumValues(Bench& gpu, Bench& host) {
  ValueMapShape shape;
  shape.lines = 9000;
  shape.mirror_sign = -1;
  std::vector<int32_t> start = {0};
  std::vector<uint32_t> source;
  for (int64_t e = 0; e < 4000; ++e) {
    const int64_t count = e == 1234 ? 5000 : e % 4;
    for (int64_t k = 0; k < count; ++k) {
      const auto line = static_cast<uint32_t>((e * 7 + k * 1001) % shape.lines);
      source.push_back(k % 2 == 1 ? line | ValueMap::kMirrored : line);
    }
    start.push_back(static_cast<int32_t>(source.size()));
  }
  source[100] |= ValueMap::kReal;
  shape.elements = std::ssize(start) - 1;
  shape.sources = std::ssize(source);
  std::vector<uint32_t> block(start.begin(), start.end());
  block.insert(block.end(), source.begin(), source.end());
  const auto values = RandomVector<T>(shape.lines, 63);
  int64_t not_real[2];
  const auto sum = [&](Bench& bench, int64_t* first_not_real) {
    const Buffer map = bench.Put(block);
    const Buffer arrived = bench.Put(values);
    const Buffer out = bench.Put(std::vector<T>(shape.elements));
    EXPECT_TRUE(bench.ops()
                    .SumValues(ValueMap(map.data(), shape), kDTypeOf<T>, arrived.data(), out.data())
                    .ok());
    *first_not_real = bench.Wait().values.first_not_real;
    return bench.Get<T>(out);
  };
  EXPECT_TRUE(SameBits(sum(gpu, &not_real[0]), sum(host, &not_real[1])));
  EXPECT_EQ(not_real[0], not_real[1]);
  EXPECT_EQ(not_real[0] >= 0, kIsComplex<T>);
}

TEST_F(OpsTest, ValuesAreSummedInEveryType) {
  CheckSumValues<float>(*gpu_, *host_);
  CheckSumValues<double>(*gpu_, *host_);
  CheckSumValues<Complex64>(*gpu_, *host_);
  CheckSumValues<Complex128>(*gpu_, *host_);
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
