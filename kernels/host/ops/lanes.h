// Reductions in independent lanes, so that the compiler can use vector registers without changing
// the result.
#ifndef CROUT_KERNELS_HOST_OPS_LANES_H_
#define CROUT_KERNELS_HOST_OPS_LANES_H_

#include <cstdint>

namespace crout::host {

inline constexpr int kLanes = 8;

// In the one order in which lanes are added up.
inline double SumOfLanes(const double (&sum)[kLanes]) {
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

// Largest of 0 and value(i) for i in [0, count); NaN values are passed over.
template <class T, class Value>
T MaxInLanes(int64_t count, const Value& value) {
  T max = 0;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < count; ++i) {
    const T v = value(i);
    max = v > max ? v : max;
  }
  return max;
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_LANES_H_
