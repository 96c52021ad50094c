// SPDX-License-Identifier: Apache-2.0

// Powers of two that scale numbers into range without rounding.
#ifndef CROUT_KERNELS_NUMERICS_NORMALIZING_SCALE_H_
#define CROUT_KERNELS_NUMERICS_NORMALIZING_SCALE_H_

#include <algorithm>
#include <cmath>

#ifdef __CUDACC__
#define CROUT_HOST_DEVICE __host__ __device__
#else
#define CROUT_HOST_DEVICE
#endif

namespace crout {

// Returns a power of two whose product with `largest` is in [2^exponent, 2^(exponent + 1)), or as
// close to it as possible; the power and its reciprocal are in float64's range. 1 for 0, Inf and
// NaN.
CROUT_HOST_DEVICE inline double NormalizingScale(double largest, int exponent = 0) {
  constexpr int kLargest = 1022;
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  return std::ldexp(1.0, std::clamp(exponent - std::ilogb(largest), -kLargest, kLargest));
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_NORMALIZING_SCALE_H_
