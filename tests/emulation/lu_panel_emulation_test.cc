// SPDX-License-Identifier: Apache-2.0

// Tests the device code of the crout_lu panels on host threads. Checks every element. Under
// ThreadSanitizer, also checks the synchronization between the blocks of a cluster, which the
// racecheck tool of compute-sanitizer does not support.
#include "kernels/cuda/crout_lu/lu_panel.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/scalar.h"
#include "tests/emulation/device_numbers.h"

namespace crout::cuda::lu_panel_emulation_test {
namespace {

template <class T>
struct Factored {
  std::vector<T> lu;
  std::vector<int64_t> ipiv;
  int info = 0;
  int halt = 0;
  int64_t reported_columns = -1;
};

struct HostFlags {
  uint32_t stop = 0;
  int halt = 0;
};

constexpr int64_t kBegin = 7;  // first column of the panel in the matrix

// Factors the panel `a` (rows x columns, column-major).
template <class T, class Variant>
Factored<T> Factor(Variant variant, const std::vector<T>& a, int64_t rows, int64_t columns,
                   HostFlags flags = {}) {
  Factored<T> factored = {a, std::vector<int64_t>(kBegin + columns, -1)};
  LuControl<T> control = {T{-1}, T{1}, 0, flags.halt};
  LuPanel<T> panel;
  panel.a = {factored.lu.data(), rows, columns, rows};
  panel.begin = kBegin;
  panel.ipiv = factored.ipiv.data();
  panel.control = &control;
  panel.host.stop = &flags.stop;
  panel.host.columns = &factored.reported_columns;
  EXPECT_LE(rows, Variant::kMaxBlocks * Variant::kBlockRows);
  EXPECT_EQ(LaunchVariant<T>(variant, panel, nullptr), cudaSuccess);
  factored.info = control.info;
  factored.halt = control.halt;
  return factored;
}

// Compares with elimination in float64 with the same pivots. Each pivot must be a largest
// candidate.
template <class T>
void ExpectFactorOf(const std::vector<T>& a, int64_t rows, int64_t columns,
                    const Factored<T>& factored) {
  std::vector<Wide<T>> lu;
  for (const T& x : a) lu.push_back(ToHostFloat64(x));
  const auto at = [&](int64_t i, int64_t j) -> Wide<T>& { return lu[i + j * rows]; };
  const double tolerance = 1e3 * std::numeric_limits<RealPart<T>>::epsilon();
  int info = 0;
  for (int64_t k = 0; k < columns; ++k) {
    const int64_t pivot = factored.ipiv[kBegin + k] - kBegin - 1;
    ASSERT_GE(pivot, k);
    ASSERT_LT(pivot, rows);
    for (int64_t i = k; i < rows; ++i) {
      ASSERT_LE(crout::Abs1(at(i, k)), crout::Abs1(at(pivot, k)) * (1 + tolerance))
          << "column " << k;
    }
    for (int64_t j = 0; j < columns; ++j) std::swap(at(k, j), at(pivot, j));
    const bool zero = at(k, k) == 0.0;
    if (zero && info == 0) info = static_cast<int>(kBegin + k + 1);
    for (int64_t i = k + 1; i < rows; ++i) {
      at(i, k) = zero ? 0 : at(i, k) / at(k, k);
      for (int64_t j = k + 1; j < columns; ++j) at(i, j) -= at(i, k) * at(k, j);
    }
  }
  EXPECT_EQ(factored.info, info);
  for (size_t e = 0; e < lu.size(); ++e) {
    ASSERT_LE(std::abs(ToHostFloat64(factored.lu[e]) - lu[e]), tolerance * (1 + std::abs(lu[e])))
        << "element " << e;
  }
}

template <class T, class Variant>
void ExpectFactors(Variant variant, int64_t rows, int64_t columns) {
  SCOPED_TRACE(::testing::Message() << NameOf(kDTypeOf<T>) << ' ' << rows << " x " << columns
                                    << ", " << Variant::kRows << " rows a thread");
  const std::vector<T> a = Random<T>(rows, columns);
  const Factored<T> factored = Factor(variant, a, rows, columns);
  ExpectFactorOf(a, rows, columns, factored);
  EXPECT_EQ(factored.reported_columns, kBegin);
  EXPECT_EQ(factored.halt, 0);
}

TEST(LuPanelEmulationTest, FactorsPanelsInOneBlock) {
  ExpectFactors<double>(LuPanelVariant<32, 1, 64, 1>{}, 50, 32);
  ExpectFactors<double>(LuPanelVariant<32, 2, 64, 1>{}, 128, 31);
  ExpectFactors<float>(LuPanelVariant<32, 1, 64, 1>{}, 64, 32);
  ExpectFactors<double>(LuPanelVariant<8, 1, 256, 1>{}, 250, 8);
  ExpectFactors<double>(LuPanelVariant<8, 1, 32, 1>{}, 1, 1);
}

TEST(LuPanelEmulationTest, FactorsPanelsInClusters) {
  ExpectFactors<double>(LuPanelVariant<32, 1, 32>{}, 128, 32);
  ExpectFactors<double>(LuPanelVariant<16, 4, 32>{}, 500, 16);
  ExpectFactors<float>(LuPanelVariant<32, 2, 64>{}, 256, 32);
  ExpectFactors<float>(LuPanelVariant<8, 16, 32>{}, 1000, 5);
  // Four keys are too few for the warps of this variant.
  ExpectFactors<double>(LuPanelVariant<8, 1, 256>{}, 300, 8);
}

TEST(LuPanelEmulationTest, FactorsComplexPanels) {
  ExpectFactors<Complex<double>>(LuPanelVariant<32, 1, 64, 1>{}, 50, 32);
  ExpectFactors<Complex<double>>(LuPanelVariant<32, 1, 32>{}, 128, 31);
  ExpectFactors<Complex<double>>(LuPanelVariant<8, 2, 64>{}, 500, 8);
  ExpectFactors<Complex<float>>(LuPanelVariant<32, 1, 64, 1>{}, 64, 32);
  ExpectFactors<Complex<float>>(LuPanelVariant<16, 2, 32>{}, 250, 15);
}

// 5 has the larger modulus, but 3.4 + 3.4i has the larger |Re| + |Im|.
TEST(LuPanelEmulationTest, ChoosesComplexPivotsLikeLapack) {
  constexpr int64_t kRows = 40;
  std::vector<Complex<double>> a = Random<Complex<double>>(kRows, 8);
  a[3] = 5;
  a[7] = {3.4, 3.4};
  const auto factored = Factor(LuPanelVariant<8, 1, 32>{}, a, kRows, 8);
  ExpectFactorOf(a, kRows, 8, factored);
  EXPECT_EQ(factored.ipiv[kBegin], kBegin + 7 + 1);
}

TEST(LuPanelEmulationTest, ReportsAColumnOfZeros) {
  constexpr int64_t kRows = 100;
  std::vector<double> a = Random<double>(kRows, 32);
  std::fill_n(a.begin() + 16 * kRows, kRows, 0.0);
  ExpectFactorOf(a, kRows, 32, Factor(LuPanelVariant<32, 2, 64, 1>{}, a, kRows, 32));
  ExpectFactorOf(a, kRows, 32, Factor(LuPanelVariant<32, 1, 32>{}, a, kRows, 32));
}

// The high words of the candidates are equal; only their low words differ.
TEST(LuPanelEmulationTest, DistinguishesCandidatesByTheirLastBits) {
  constexpr int64_t kRows = 90;
  std::vector<double> a = Random<double>(kRows, 8);
  for (int64_t i = 0; i < kRows; ++i) {
    a[i] = 1 + static_cast<double>(i * 37 % kRows) * std::numeric_limits<double>::epsilon();
  }
  const Factored<double> factored = Factor(LuPanelVariant<8, 1, 32>{}, a, kRows, 8);
  ExpectFactorOf(a, kRows, 8, factored);
  const auto largest = std::max_element(a.begin(), a.begin() + kRows) - a.begin();
  EXPECT_EQ(factored.ipiv[kBegin], kBegin + largest + 1);
}

TEST(LuPanelEmulationTest, DividesByPivotsWithoutAReciprocal) {
  using Limits = std::numeric_limits<double>;
  for (const double pivot : {Limits::denorm_min(), Limits::max()}) {
    constexpr int64_t kRows = 70;
    std::vector<double> a(kRows * 8, 0.0);
    for (int64_t j = 0; j < 8; ++j) a[j + j * kRows] = 1;
    a[2 + 2 * kRows] = pivot;
    a[3 + 2 * kRows] = -pivot / 2;
    ExpectFactorOf(a, kRows, 8, Factor(LuPanelVariant<8, 1, 32>{}, a, kRows, 8));
  }
}

TEST(LuPanelEmulationTest, DoesNothingAfterAHalt) {
  const std::vector<double> a = Random<double>(64, 8);
  const Factored<double> factored = Factor(LuPanelVariant<8, 1, 32>{}, a, 64, 8, {0, 1});
  EXPECT_EQ(factored.lu, a);
  EXPECT_EQ(factored.reported_columns, -1);
}

TEST(LuPanelEmulationTest, HaltsOnRequest) {
  const std::vector<double> a = Random<double>(64, 8);
  EXPECT_NE(Factor(LuPanelVariant<8, 1, 32>{}, a, 64, 8, {1, 0}).halt, 0);
}

}  // namespace
}  // namespace crout::cuda::lu_panel_emulation_test
