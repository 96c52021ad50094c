// SPDX-License-Identifier: Apache-2.0

// Tests sums, products and changes of entries on a GPU against the host.
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "kernels/scalar.h"
#include "tests/gpu/ops/ops_testing.h"

namespace crout::ops_test {
namespace {

TEST(NearTest, RejectsValuesBeyondTheTolerance) {
  EXPECT_THAT(1 + 2e-13, ::testing::Not(Near(1)));
  EXPECT_THAT(kNan, ::testing::Not(Near(1)));
}

TEST(SameBitsTest, DistinguishesOneBit) {
  EXPECT_FALSE(SameBits<double>({1, 2}, {1, std::nextafter(2, 3)}));
  EXPECT_FALSE(SameBits<double>({0.0}, {-0.0}));
  EXPECT_TRUE(SameBits<double>({1, kNan}, {1, kNan}));
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

TEST_F(OpsTest, AddsMatricesWithGaps) {
  CheckAdd<double>(*gpu_);
  CheckAdd<Complex128>(*gpu_);
}

// Computes c := beta c - op(a) b with submatrices a, b and c.
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

TEST_F(OpsTest, MultipliesInEveryType) {
  for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
    for (const double beta : {0.0, 1.0}) {
      CheckMultiply<float>(*gpu_, *host_, op, beta);
      CheckMultiply<double>(*gpu_, *host_, op, beta);
      CheckMultiply<Complex64>(*gpu_, *host_, op, beta);
      CheckMultiply<Complex128>(*gpu_, *host_, op, beta);
    }
  }
}

// Sets some entries of a padded matrix. Then sets entries outside the matrix, and one entry twice.
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

TEST_F(OpsTest, SetsEntriesInEveryType) {
  CheckSetEntries<float>(*gpu_);
  CheckSetEntries<double>(*gpu_);
  CheckSetEntries<Complex64>(*gpu_);
  CheckSetEntries<Complex128>(*gpu_);
}

// Compares sums on GPU and host. Elements have 0 to 3 values, some of them mirrored; one element
// has 5000 values.
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

TEST_F(OpsTest, SumsValuesInEveryType) {
  CheckSumValues<float>(*gpu_, *host_);
  CheckSumValues<double>(*gpu_, *host_);
  CheckSumValues<Complex64>(*gpu_, *host_);
  CheckSumValues<Complex128>(*gpu_, *host_);
}

TEST_F(OpsTest, ReportsZerosForEmptyMatrices) {
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
}  // namespace crout::ops_test
