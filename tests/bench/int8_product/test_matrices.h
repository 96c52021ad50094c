// SPDX-License-Identifier: Apache-2.0

// Matrices A and B of several families, and exact products of sampled elements.
#ifndef CROUT_TESTS_BENCH_INT8_PRODUCT_TEST_MATRICES_H_
#define CROUT_TESTS_BENCH_INT8_PRODUCT_TEST_MATRICES_H_

#include <cmath>
#include <cstdint>

#include "kernels/numerics/normalizing_scale.h"

namespace crout::int8_product {

enum class Family {
  kUnit,      // uniform in [-1, 1]
  kOuter,     // rows of A and columns of B scaled by 10^U[-6, 6]
  kSpread,    // U[-1, 1] exp(N[0, 1])
  kWide,      // U[-1, 1] exp(2 N[0, 1])
  kFactors,   // A as L with |l| <= 1, B as U whose rows decrease to 1e-8 times the first
  kInner,     // columns of A and rows of B scaled by 10^U[-2, 2], independently
  kBalanced,  // columns of A scaled by 10^U[-2, 2], rows of B by the inverse
};
inline constexpr const char* kFamilyNames[] = {"unit",    "outer", "spread",  "wide",
                                               "factors", "inner", "balanced"};
inline constexpr int kFamilies = 7;

// Returns a number of [-1, 1) that depends on all arguments (splitmix64).
CROUT_HOST_DEVICE inline double Uniform(uint64_t stream, uint64_t i, uint64_t j) {
  uint64_t x = (stream << 56) + (i << 28) + j;
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x = x ^ (x >> 31);
  return static_cast<double>(static_cast<int64_t>(x)) * 0x1p-63;
}

CROUT_HOST_DEVICE inline double Normal(uint64_t stream, uint64_t i, uint64_t j) {
  const double radius = 0.5 + 0.5 * Uniform(stream, i, j) + 0x1p-60;
  return sqrt(-2 * log(radius)) * cos(3.14159265358979323846 * Uniform(stream + 1, i, j));
}

// Returns an element of A (`of_b` false) or B. `outer` is the row of A or the column of B, `inner`
// the other index, below `count`.
CROUT_HOST_DEVICE inline double Element(Family family, bool of_b, int64_t outer, int64_t inner,
                                        int64_t count) {
  const uint64_t stream = of_b ? 16 : 0;
  const double x = Uniform(stream, outer, inner);
  switch (family) {
    case Family::kUnit:
      return x;
    case Family::kOuter:
      return x * pow(10.0, 6 * Uniform(stream + 4, outer, 0));
    case Family::kSpread:
      return x * exp(Normal(stream + 5, outer, inner));
    case Family::kWide:
      return x * exp(2 * Normal(stream + 5, outer, inner));
    case Family::kFactors: {
      const double y = Normal(stream + 5, outer, inner);
      if (of_b)
        return y * pow(10.0, -8.0 * static_cast<double>(inner) / static_cast<double>(count));
      return fmin(fmax(y / 2, -1.0), 1.0);
    }
    case Family::kInner:
      return x * pow(10.0, 2 * Uniform(stream + 7, 0, inner));
    case Family::kBalanced:
      return x * pow(10.0, (of_b ? -2 : 2) * Uniform(7, 0, inner));
  }
  return 0;
}

// A sum of products in twice the precision of float64, and of their absolute values.
struct ExactDot {
  double high = 0;
  double low = 0;
  double absolute = 0;

  void Add(double x, double y) {
    const double product = x * y;
    const double product_error = std::fma(x, y, -product);
    const double sum = high + product;
    const double shared = sum - high;
    low += (high - (sum - shared)) + (product - shared) + product_error;
    high = sum;
    absolute += std::fabs(product);
  }
  // Returns |value - sum| / sum of absolute values, in units of 2^-53.
  double ErrorOf(double value) const { return std::fabs((value - high) - low) / absolute * 0x1p53; }
};

}  // namespace crout::int8_product

#endif  // CROUT_TESTS_BENCH_INT8_PRODUCT_TEST_MATRICES_H_
