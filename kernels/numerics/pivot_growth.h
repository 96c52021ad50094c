// How much an elimination lets the entries grow.
#ifndef CROUT_KERNELS_NUMERICS_PIVOT_GROWTH_H_
#define CROUT_KERNELS_NUMERICS_PIVOT_GROWTH_H_

#include <cmath>
#include <limits>

#include "kernels/dtype.h"
#include "kernels/numerics/normalizing_scale.h"

namespace crout {

// Largest entry of what the elimination made over the largest of its matrix: 0/0 is 1, and +Inf
// stands for what left the range of its type.
CROUT_HOST_DEVICE inline double PivotGrowth(double max_abs_made, double max_abs_a) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!std::isfinite(max_abs_made)) return kInfinity;
  if (max_abs_a == 0) return max_abs_made == 0 ? 1 : kInfinity;
  return max_abs_made / max_abs_a;
}

// `max_abs_made`, the largest modulus of U, as far as the type can divide by it: dividing by a
// complex number takes up to sqrt(2) times its modulus on the way, beyond the range of which
// quotients are 0 without a word. +Inf there.
CROUT_HOST_DEVICE inline double DivisibleOrInfinity(double max_abs_made, DType dtype) {
  const double largest = LargestConvertible(dtype);
  const bool divisible = !IsComplex(dtype) || max_abs_made <= largest / 1.5;
  return divisible ? max_abs_made : std::numeric_limits<double>::infinity();
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_PIVOT_GROWTH_H_
