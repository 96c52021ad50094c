// Reductions in independent lanes, so that the compiler can use vector registers without changing
// the result.
#ifndef CROUT_KERNELS_HOST_OPS_LANES_H_
#define CROUT_KERNELS_HOST_OPS_LANES_H_

#include <cmath>
#include <cstdint>

#include "kernels/host/ops/vector_clones.h"
#include "kernels/scalar.h"

namespace crout::host {

inline constexpr int kLanes = 8;

// In the one order in which lanes are added up.
inline double SumOfLanes(const double (&sum)[kLanes]) {
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

// Sum of term(i) for i in [0, count), which are of type Sum: in lanes, and these one after the
// other.
template <class Sum, class Term>
CROUT_PART_OF_CLONES Sum SumInLanes(int64_t count, const Term& term) {
  Sum lanes[kLanes] = {};
  const int64_t whole = count - count % kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (int k = 0; k < kLanes; ++k) lanes[k] += term(i + k);
  }
  for (int64_t i = whole; i < count; ++i) lanes[i - whole] += term(i);
  Sum sum = 0;
  for (const Sum& lane : lanes) sum += lane;
  return sum;
}

// Largest of 0 and value(i) for i in [0, count); NaN values are passed over.
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

// Largest |x_i| of i in [0, count), NaN aside.
template <class T>
CROUT_PART_OF_CLONES double MaxAbs(const T* x, int64_t count) {
  if constexpr (kIsComplex<T>) {
    return MaxInLanes<double>(count, [x](int64_t i) { return Modulus(x[i]); });
  } else {
    return static_cast<double>(MaxInLanes<T>(count, [x](int64_t i) { return std::abs(x[i]); }));
  }
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_LANES_H_
