// SPDX-License-Identifier: Apache-2.0

// Reductions in independent lanes, which compilers can vectorize without changing the result.
#ifndef CROUT_KERNELS_HOST_OPS_LANES_H_
#define CROUT_KERNELS_HOST_OPS_LANES_H_

#include <cmath>
#include <complex>
#include <cstdint>

#include "kernels/host/ops/complex_parts.h"
#include "kernels/host/ops/vector_clones.h"
#include "kernels/scalar.h"

namespace crout::host {

inline constexpr int kLanes = 8;

// Adds the lanes in a fixed order.
inline double SumOfLanes(const double (&sum)[kLanes]) {
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

// A function, because compilers do not vectorize loops whose body declares variables of class type.
template <class Sum, class Term>
CROUT_PART_OF_CLONES void AddTerm(const Term& term, int64_t i, Sum& sum) {
  sum += term(i);
}

// Sum of term(i), of type Sum, for i in [0, count): summed in lanes, then lane by lane.
template <class Sum, class Term>
CROUT_PART_OF_CLONES Sum SumInLanes(int64_t count, const Term& term) {
  Sum lanes[kLanes] = {};
  const int64_t whole = count - count % kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (int k = 0; k < kLanes; ++k) AddTerm(term, i + k, lanes[k]);
  }
  for (int64_t i = whole; i < count; ++i) AddTerm(term, i, lanes[i - whole]);
  Sum sum = {};
  for (const Sum& lane : lanes) sum += lane;
  return sum;
}

// x^T y over `count` elements, in float64 or complex128.
template <class T, class Y>
CROUT_PART_OF_CLONES WideType<T> DotInLanes(const T* x, const Y* y, int64_t count) {
  const auto term = [x, y](int64_t i) { return LoadWide(x + i) * LoadWide(y + i); };
  const auto sum = SumInLanes<Parts<WideType<T>>>(count, term);
  if constexpr (kIsComplex<T>) {
    return {sum.re, sum.im};
  } else {
    return sum;
  }
}

// Largest of 0 and value(i) for i in [0, count). Ignores NaN.
template <class T, class Value>
CROUT_PART_OF_CLONES T MaxInLanes(int64_t count, const Value& value) {
  T max = 0;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < count; ++i) {
    const T v = value(i);
    max = v > max ? v : max;
  }
  return max;
}

// Maximum and sum of |x_i| for i in [0, count), in float64. The maximum ignores NaN.
struct Moduli {
  double max = 0;
  double sum = 0;
};

// |*x|^2 of a complex number, in float64.
template <class T>
CROUT_PART_OF_CLONES double SquareOf(const T* x) {
  const Parts<std::complex<double>> wide = LoadWide(x);
  return wide.re * wide.re + wide.im * wide.im;
}

// True if the largest square did not overflow and no square that matters next to it underflowed.
constexpr bool IsInRange(double square) { return square > 0x1p-860 && square < 0x1p1020; }

template <class T>
CROUT_PART_OF_CLONES Moduli ComputeModuli(const T* x, int64_t count) {
  if constexpr (kIsComplex<T>) {
    const auto square = MaxInLanes<double>(count, [x](int64_t i) { return SquareOf(x + i); });
    if (IsInRange(square)) {
      const auto root = [x](int64_t i) { return std::sqrt(SquareOf(x + i)); };
      return {std::sqrt(square), SumInLanes<double>(count, root)};
    }
  }
  const auto modulus = [x](int64_t i) { return Modulus(x[i]); };
  return {MaxInLanes<double>(count, modulus), SumInLanes<double>(count, modulus)};
}

// Largest |x_i| for i in [0, count). Ignores NaN.
template <class T>
CROUT_PART_OF_CLONES double MaxAbs(const T* x, int64_t count) {
  if constexpr (kIsComplex<T>) {
    const auto square = MaxInLanes<double>(count, [x](int64_t i) { return SquareOf(x + i); });
    if (IsInRange(square)) return std::sqrt(square);
    return MaxInLanes<double>(count, [x](int64_t i) { return Modulus(x[i]); });
  } else {
    return static_cast<double>(MaxInLanes<T>(count, [x](int64_t i) { return std::abs(x[i]); }));
  }
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_LANES_H_
