// SPDX-License-Identifier: Apache-2.0

// Element growth in an elimination.
#ifndef CROUT_KERNELS_NUMERICS_PIVOT_GROWTH_H_
#define CROUT_KERNELS_NUMERICS_PIVOT_GROWTH_H_

#include <cmath>
#include <limits>

#include "kernels/dtype.h"
#include "kernels/numerics/normalizing_scale.h"

namespace crout {

// Returns the largest entry after elimination over the largest entry of the matrix. 0/0 is 1; +Inf
// if the elimination overflowed its type.
CROUT_HOST_DEVICE inline double PivotGrowth(double max_abs_made, double max_abs_a) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!std::isfinite(max_abs_made)) return kInfinity;
  if (max_abs_a == 0) return max_abs_made == 0 ? 1 : kInfinity;
  return max_abs_made / max_abs_a;
}

// Returns `max_abs_made`, the largest modulus of U, or +Inf if the type cannot divide by it.
// Division by a complex number uses up to sqrt(2) times its modulus internally; if that overflows,
// quotients are silently 0.
CROUT_HOST_DEVICE inline double DivisibleOrInfinity(double max_abs_made, DType dtype) {
  const double largest = LargestConvertible(dtype);
  const bool divisible = !IsComplex(dtype) || max_abs_made <= largest / 1.5;
  return divisible ? max_abs_made : std::numeric_limits<double>::infinity();
}

// Returns true if rounding errors of `dtype` may have grown to the size of the matrix's entries, or
// if growth is NaN. A zero pivot is then inconclusive.
CROUT_HOST_DEVICE inline bool GrowthHidesSingularity(double growth, DType dtype) {
  return !(growth * UnitRoundoff(dtype) < 1);
}

// Returns the modulus of the pivot that replaces such a zero: the rounding error of U's largest
// entry, which may have overflowed.
CROUT_HOST_DEVICE inline double ZeroPivotReplacement(double max_abs_u, DType dtype) {
  const double largest = LargestConvertible(dtype);
  return UnitRoundoff(dtype) * (max_abs_u <= largest ? max_abs_u : largest);
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_PIVOT_GROWTH_H_
