// SPDX-License-Identifier: Apache-2.0

// Tests of the arithmetic of products by residues, with the functions that the kernels call.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/bench/int8_product/residue_system.h"
#include "tests/bench/int8_product/test_matrices.h"

namespace crout::int8_product {
namespace {

__extension__ using Int128 = __int128;

TEST(ResidueSystem, ReducesProductsToCongruentBytes) {
  const ResidueSystem system = MakeResidueSystem(kMaxModuli);
  for (const Modulus& m : system.moduli) {
    const int32_t least = m.p == 256 ? -128 : -127;
    const auto check = [&](int32_t x) {
      const int32_t residue = SymmetricResidue(x, m.p, m.reciprocal);
      ASSERT_GE(residue, least) << x << " modulo " << m.p;
      ASSERT_LE(residue, 127) << x << " modulo " << m.p;
      ASSERT_EQ((x - residue) % m.p, 0) << x << " modulo " << m.p;
    };
    for (int32_t x = 0; x < 100000; ++x) {
      check(x - 50000);
      check(kMaxReducible - x);
      check(x - kMaxReducible);
      check(static_cast<int32_t>(Uniform(1, m.p, x) * kMaxReducible));
    }
  }
}

TEST(ResidueSystem, ModuliHaveNoCommonFactors) {
  const ResidueSystem system = MakeResidueSystem(kMaxModuli);
  for (int i = 0; i < kMaxModuli; ++i) {
    for (int j = 0; j < i; ++j) {
      int32_t x = system.moduli[i].p;
      int32_t y = system.moduli[j].p;
      while (y != 0) x = std::exchange(y, x % y);
      EXPECT_EQ(x, 1) << system.moduli[i].p << " and " << system.moduli[j].p;
    }
  }
}

TEST(ResidueSystem, SplitsIntegersOfAllSizes) {
  const ResidueSystem system = MakeResidueSystem(kMaxModuli);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::rint(std::ldexp(Uniform(2, i, 0), i % 71));
    int32_t digits[kDigits];
    SplitDigits(x, digits);
    for (const Modulus& m : system.moduli) {
      const int32_t residue = ResidueOfDigits(digits, m);
      ASSERT_EQ(static_cast<int>((static_cast<Int128>(x) - residue) % m.p), 0) << x;
      ASSERT_LE(std::abs(2 * residue), m.p + 2) << x;
    }
  }
}

TEST(ResidueSystem, ReconstructsIntegers) {
  for (int count = kMinModuli; count <= 16; ++count) {
    const ResidueSystem system = MakeResidueSystem(count);
    Int128 product = 1;
    for (int i = 0; i < count; ++i) product *= system.moduli[i].p;
    const double half = static_cast<double>(product / 2);
    for (int i = 0; i < 20000; ++i) {
      const double size = i % 3 == 0 ? 0.999 * half : std::ldexp(half, -(i % 90));
      const Int128 x = static_cast<Int128>(Uniform(3, i, count) * size) + i % 7;
      Reconstruction sums;
      for (int j = 0; j < count; ++j) {
        const auto residue = static_cast<int32_t>(x % system.moduli[j].p);
        sums.Add(system, j,
                 SymmetricResidue(residue, system.moduli[j].p, system.moduli[j].reciprocal));
      }
      const double value = sums.Value(system);
      const double expected = static_cast<double>(x);
      const double error = std::fabs(value - expected);
      ASSERT_LE(error, 0x1p-52 * std::fabs(expected) + 0x1p-76 * half) << count << " moduli";
    }
  }
}

// Computes x y as the kernels do.
double EmulatedDot(const ResidueSystem& system, const std::vector<double>& x,
                   const std::vector<double>& y) {
  double squares[2] = {0, 0};
  for (size_t i = 0; i < x.size(); ++i) {
    squares[0] += x[i] * x[i];
    squares[1] += y[i] * y[i];
  }
  const int exponents[2] = {ScalingExponent(squares[0], system.norm_bits),
                            ScalingExponent(squares[1], system.norm_bits)};
  std::vector<int32_t> sums(system.count);
  for (size_t i = 0; i < x.size(); ++i) {
    int32_t digits[2][kDigits];
    SplitDigits(x[i] * PowerOfTwo(exponents[0]), digits[0]);
    SplitDigits(y[i] * PowerOfTwo(exponents[1]), digits[1]);
    for (int j = 0; j < system.count; ++j) {
      const Modulus& m = system.moduli[j];
      const int32_t product = ResidueOfDigits(digits[0], m) * ResidueOfDigits(digits[1], m);
      sums[j] += product;
    }
  }
  Reconstruction result;
  for (int j = 0; j < system.count; ++j) {
    const Modulus& m = system.moduli[j];
    const int32_t residue = SymmetricResidue(sums[j], m.p, m.reciprocal);
    const uint32_t packed = PackResidues(0, residue, 0, residue);
    EXPECT_EQ(UnpackResidue(packed, 1), UnpackResidue(packed, 3));
    result.Add(system, j, UnpackResidue(packed, 3));
  }
  return result.Value(system) * PowerOfTwo(-exponents[0]) * PowerOfTwo(-exponents[1]);
}

// Returns the largest error of products of vectors of a family, in units of 2^-53.
double LargestError(Family family, int moduli, int inner) {
  const ResidueSystem system = MakeResidueSystem(moduli);
  double largest = 0;
  for (int sample = 0; sample < 30; ++sample) {
    std::vector<double> x(inner);
    std::vector<double> y(inner);
    ExactDot exact;
    for (int i = 0; i < inner; ++i) {
      x[i] = Element(family, false, sample, i, inner);
      y[i] = Element(family, true, sample, i, inner);
      exact.Add(x[i], y[i]);
    }
    largest = std::max(largest, exact.ErrorOf(EmulatedDot(system, x, y)));
  }
  return largest;
}

TEST(EmulatedProduct, IsAsAccurateAsItsModuli) {
  for (const int inner : {128, 1024, 4096}) {
    for (int moduli = kMinModuli; moduli <= kMaxModuli; ++moduli) {
      // Every modulus adds half of its bits to an element. 14 moduli round elements to about 49
      // bits.
      const double limit = 2.5 * std::exp2(3.8 * (14 - moduli)) + 1.1;
      EXPECT_LE(LargestError(Family::kUnit, moduli, inner), limit) << moduli << " " << inner;
      EXPECT_LE(LargestError(Family::kOuter, moduli, inner), limit) << moduli << " " << inner;
    }
  }
}

TEST(EmulatedProduct, HoldsTheLargestProduct) {
  for (int moduli = kMinModuli; moduli <= kMaxModuli; ++moduli) {
    const ResidueSystem system = MakeResidueSystem(moduli);
    for (const int inner : {1, 3, 4096}) {
      // Parallel vectors reach the bound of Cauchy and Schwarz.
      const std::vector<double> x(inner, 1.9999);
      EXPECT_NEAR(EmulatedDot(system, x, x) / (1.9999 * 1.9999 * inner), 1, 0x1p-40);
    }
  }
}

TEST(EmulatedProduct, OfZerosIsZero) {
  const ResidueSystem system = MakeResidueSystem(14);
  EXPECT_EQ(EmulatedDot(system, std::vector<double>(5), std::vector<double>(5, 1.0)), 0);
}

}  // namespace
}  // namespace crout::int8_product
