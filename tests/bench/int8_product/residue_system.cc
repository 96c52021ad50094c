// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/int8_product/residue_system.h"

#include <vector>

namespace crout::int8_product {
namespace {

// The largest numbers up to 256 without common factors, each the largest that has none with those
// before it.
constexpr int32_t kModuli[kMaxModuli] = {256, 255, 253, 251, 247, 241, 239, 233, 229,
                                         227, 223, 217, 211, 199, 197, 193, 191, 181};

// A natural number in words of 16 bits, least significant first.
using Natural = std::vector<uint32_t>;

void Multiply(Natural& x, uint32_t factor) {
  uint32_t carry = 0;
  for (uint32_t& word : x) {
    carry += word * factor;
    word = carry & 0xffff;
    carry >>= 16;
  }
  if (carry != 0) x.push_back(carry);
}

// Returns x modulo p.
int32_t Remainder(const Natural& x, int32_t p) {
  uint32_t rest = 0;
  for (auto word = x.rbegin(); word != x.rend(); ++word) rest = (rest << 16 | *word) % p;
  return static_cast<int32_t>(rest);
}

int BitLength(const Natural& x) {
  int bits = 16 * static_cast<int>(x.size());
  while (bits > 0 && (x[(bits - 1) / 16] >> ((bits - 1) % 16) & 1) == 0) --bits;
  return bits;
}

// Returns the value of the bits from `first` to before `end`, rounded towards zero to 53 bits.
double BitsValue(const Natural& x, int first, int end) {
  double value = 0;
  int used = 0;
  for (int bit = end - 1; bit >= first && used < 53; --bit) {
    if (static_cast<size_t>(bit / 16) >= x.size()) continue;
    const bool set = (x[bit / 16] >> (bit % 16) & 1) != 0;
    if (set) value += std::ldexp(1.0, bit);
    if (set || used > 0) ++used;
  }
  return value;
}

// Returns the representative of x modulo p in (-p / 2, p / 2].
int32_t Centered(int32_t x, int32_t p) { return 2 * x > p ? x - p : x; }

int32_t Inverse(int32_t x, int32_t p) {
  for (int32_t y = 1; y < p; ++y) {
    if (x * y % p == 1) return y;
  }
  return 1;
}

}  // namespace

ResidueSystem MakeResidueSystem(int count) {
  ResidueSystem system = {};
  system.count = count;
  Natural product = {1};
  double product_bits = 0;
  for (int i = 0; i < count; ++i) {
    Multiply(product, kModuli[i]);
    product_bits += std::log2(kModuli[i]);
  }
  // A sum of the high parts of all weights times residues is below 2^(bits of P + 11).
  const int bits = BitLength(product);
  const int split = bits + 11 - 53;
  system.product_high = BitsValue(product, split, bits);
  system.product_low = BitsValue(product, 0, split);
  system.product_reciprocal = 1 / system.product_high;
  // 2 |x||y| < P by the inequality of Cauchy and Schwarz; the rest covers the rounding of elements.
  system.norm_bits = (product_bits - 1) / 2 - 0x1p-10;
  for (int i = 0; i < count; ++i) {
    const int32_t p = kModuli[i];
    Modulus& m = system.moduli[i];
    m.p = p;
    m.reciprocal = static_cast<int32_t>(std::llround(0x1p32 / p));
    for (int digit = 0; digit < kDigits; ++digit) {
      int32_t power = 1;
      for (int bit = 0; bit < kDigitBits * digit; ++bit) power = 2 * power % p;
      m.digit_values[digit] = Centered(power, p);
    }
    Natural weight = {1};
    for (int j = 0; j < count; ++j) {
      if (j != i) Multiply(weight, kModuli[j]);
    }
    const int32_t inverse = Centered(Inverse(Remainder(weight, p), p), p);
    Multiply(weight, static_cast<uint32_t>(std::abs(inverse)));
    const double sign = inverse < 0 ? -1 : 1;
    system.weight_high[i] = sign * BitsValue(weight, split, bits);
    system.weight_low[i] = sign * BitsValue(weight, 0, split);
  }
  return system;
}

}  // namespace crout::int8_product
