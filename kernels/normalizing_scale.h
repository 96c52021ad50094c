// Powers of two that bring numbers into range without rounding them.
#ifndef CROUT_KERNELS_NORMALIZING_SCALE_H_
#define CROUT_KERNELS_NORMALIZING_SCALE_H_

#include <algorithm>
#include <cmath>

namespace crout {

// A power of two, in float64's range with its reciprocal, whose product with `largest` is near 1:
// in [1, 2) for those in [2^-1000, 2^1001), nearer to that for others. 1 for 0, Inf and NaN.
inline double NormalizingScale(double largest) {
  constexpr int kLargest = 1000;
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  return std::ldexp(1.0, -std::clamp(std::ilogb(largest), -kLargest, kLargest));
}

}  // namespace crout

#endif  // CROUT_KERNELS_NORMALIZING_SCALE_H_
