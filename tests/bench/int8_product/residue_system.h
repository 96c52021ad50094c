// SPDX-License-Identifier: Apache-2.0

// Arithmetic of a product of float64 matrices by residues. Scheme II of Ozaki, Uchino and Imamura
// (2025): rows of A and columns of B are scaled by powers of two and rounded to integers, so that
// every element of the integer product is less than half the product P of the moduli. The residues
// of the factors fit into int8, and the Chinese remainder theorem reconstructs the product.
#ifndef CROUT_TESTS_BENCH_INT8_PRODUCT_RESIDUE_SYSTEM_H_
#define CROUT_TESTS_BENCH_INT8_PRODUCT_RESIDUE_SYSTEM_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/numerics/normalizing_scale.h"

namespace crout::int8_product {

inline constexpr int kMinModuli = 13;
inline constexpr int kMaxModuli = 18;

// An integer of up to 2^72 in absolute value is split into digits of this base with signs.
inline constexpr int kDigits = 4;
inline constexpr int kDigitBits = 18;

// SymmetricResidue() accepts integers up to this limit. The limit is 4096 products of two residues.
inline constexpr int32_t kMaxReducible = int32_t{1} << 26;
inline constexpr int kMaxInner = 4096;

struct Modulus {
  int32_t p;
  int32_t reciprocal;             // 2^32 / p, rounded
  int32_t digit_values[kDigits];  // residues of the powers of the base of the digits
};

// The moduli and the constants of the reconstruction. weight_high[i] + weight_low[i] is the number
// w that is 1 modulo moduli[i] and 0 modulo the others, |w| <= P / 2. The high parts of the weights
// and of P are multiples of one power of two, and few enough bits long that sums of them are exact.
struct ResidueSystem {
  int count;
  Modulus moduli[kMaxModuli];
  double weight_high[kMaxModuli];
  double weight_low[kMaxModuli];
  double product_high;
  double product_low;
  double product_reciprocal;
  double norm_bits;  // scaled rows and columns have a Euclidean norm below 2^norm_bits
};

// Returns the system of the `count` largest moduli, kMinModuli <= count <= kMaxModuli.
ResidueSystem MakeResidueSystem(int count);

// Returns 2^exponent, -1022 <= exponent <= 1023.
CROUT_HOST_DEVICE inline double PowerOfTwo(int exponent) {
  const int64_t bits = static_cast<int64_t>(exponent + 1023) << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Returns the exponent s for a row or column with this sum of squares: 2^s times the row has a norm
// below 2^norm_bits, also after its elements are rounded to integers.
CROUT_HOST_DEVICE inline int ScalingExponent(double sum_of_squares, double norm_bits) {
  if (!(sum_of_squares > 0)) return 0;
  const double exponent = floor(norm_bits - 0.5 * log2(sum_of_squares));
  return static_cast<int>(fmin(fmax(exponent, -1000.0), 1000.0));
}

// Returns a representative of x modulo m.p in [-128, 127], in [-127, 127] for odd moduli.
// |x| <= kMaxReducible.
CROUT_HOST_DEVICE inline int32_t SymmetricResidue(int32_t x, int32_t p, int32_t reciprocal) {
  const int64_t rounded = static_cast<int64_t>(x) * reciprocal + (int64_t{1} << 31);
  return x - static_cast<int32_t>(rounded >> 32) * p;
}

// Splits the integer nearest to x, |x| < 2^71.
CROUT_HOST_DEVICE inline void SplitDigits(double x, int32_t* digits) {
  double rest = rint(x);
  for (int i = kDigits - 1; i > 0; --i) {
    const double digit = rint(rest * PowerOfTwo(-kDigitBits * i));
    rest = fma(digit, -PowerOfTwo(kDigitBits * i), rest);
    digits[i] = static_cast<int32_t>(digit);
  }
  digits[0] = static_cast<int32_t>(rest);
}

// Returns the residue of an integer that SplitDigits() has split.
CROUT_HOST_DEVICE inline int32_t ResidueOfDigits(const int32_t* digits, const Modulus& m) {
  int32_t sum = digits[0];
  for (int i = 1; i < kDigits; ++i) sum += digits[i] * m.digit_values[i];
  return SymmetricResidue(sum, m.p, m.reciprocal);
}

// Adds the residues of one integer, the residue of moduli[i] being `residue`.
struct Reconstruction {
  double high = 0;
  double low = 0;

  CROUT_HOST_DEVICE void Add(const ResidueSystem& system, int i, double residue) {
    high = fma(residue, system.weight_high[i], high);
    low = fma(residue, system.weight_low[i], low);
  }
  // Returns the integer of [-P / 2, P / 2] with the residues added, rounded.
  CROUT_HOST_DEVICE double Value(const ResidueSystem& system) const {
    const double multiple = rint(high * system.product_reciprocal);
    return fma(-multiple, system.product_high, high) + fma(-multiple, system.product_low, low);
  }
};

// Returns the four bytes of a word, each the low byte of a residue.
CROUT_HOST_DEVICE inline uint32_t PackResidues(int32_t r0, int32_t r1, int32_t r2, int32_t r3) {
#ifdef __CUDA_ARCH__
  return __byte_perm(__byte_perm(r0, r1, 0x0040), __byte_perm(r2, r3, 0x0040), 0x5410);
#else
  return (r0 & 0xff) | (r1 & 0xff) << 8 | (r2 & 0xff) << 16 | static_cast<uint32_t>(r3) << 24;
#endif
}

// Returns byte `index` of `packed` as a signed number.
CROUT_HOST_DEVICE inline double UnpackResidue(uint32_t packed, int index) {
#ifdef __CUDA_ARCH__
  // The low bits of 2^52 + u are u. This avoids conversions, which have a quarter of the speed.
  const uint32_t biased = __byte_perm(packed ^ 0x80808080u, 0, 0x4440 + index);
  return __hiloint2double(0x43300000, static_cast<int>(biased)) - (0x1p52 + 128);
#else
  return static_cast<int8_t>(packed >> (8 * index));
#endif
}

}  // namespace crout::int8_product

#endif  // CROUT_TESTS_BENCH_INT8_PRODUCT_RESIDUE_SYSTEM_H_
