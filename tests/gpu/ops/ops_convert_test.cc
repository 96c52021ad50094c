// SPDX-License-Identifier: Apache-2.0

// Tests the import and export of matrices on a GPU against the host.
#include <cmath>
#include <vector>

#include "kernels/scalar.h"
#include "tests/gpu/ops/ops_testing.h"

namespace crout::ops_convert_test {
namespace {

template <class Out>
struct Imported {
  MatrixStats stats;
  std::vector<Out> matrix;
};

template <class In, class Out>
Imported<Out> Import(Bench& bench, const std::vector<In>& values, Shape shape, Layout layout) {
  const Buffer in = bench.Put(values);
  // The real form of a complex matrix has twice as many columns.
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
  // The modulus of a complex number has rounding errors.
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

TEST_F(OpsTest, ImportConvertsBetweenRealAndComplex) {
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
  // A modulus or a sum of moduli may exceed the range of the type of the parts.
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

// The matrix does not fit in a GPU's L2 cache. The length of a line is not a multiple of the number
// of elements that are read at once. Sums of the small integers are exact.
TEST_F(OpsTest, ImportMeasuresMatricesThatAreReadInParts) {
  constexpr int64_t kRows = 6200;
  constexpr int64_t kCols = 1403;
  std::vector<float> values(kRows * kCols);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
  values[(kCols - 2) * kRows + 5] = -1000;
  for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
    for (const int64_t bad : {int64_t{-1}, kRows * kCols - 1, 300 * kRows + 7}) {
      SCOPED_TRACE(bad);
      std::vector<float> packed = values;
      if (bad >= 0) packed[bad] = std::numeric_limits<float>::quiet_NaN();
      const Shape shape = layout == Layout::kRowMajor ? Shape{kCols, kRows} : Shape{kRows, kCols};
      ExpectSame(Import<float, float>(*gpu_, packed, shape, layout).stats,
                 Import<float, float>(*host_, packed, shape, layout).stats);
    }
  }
}

// Imports as type `between`, which can represent all values of T, and exports again. A real
// `between` stores a complex matrix in twice as many columns.
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

}  // namespace
}  // namespace crout::ops_convert_test
