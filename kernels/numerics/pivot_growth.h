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

// Whether roundings of `dtype` may have grown as large as the entries of the matrix, or growth is
// NaN. A zero pivot then says nothing of the matrix.
CROUT_HOST_DEVICE inline bool GrowthHidesSingularity(double growth, DType dtype) {
  return !(growth * UnitRoundoff(dtype) < 1);
}

// The pivot that takes the place of such a zero, in modulus: as large as the roundings of U's
// largest entry, which may have overflowed.
CROUT_HOST_DEVICE inline double PivotInPlaceOfZero(double max_abs_u, DType dtype) {
  const double largest = LargestConvertible(dtype);
  return UnitRoundoff(dtype) * (max_abs_u <= largest ? max_abs_u : largest);
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_PIVOT_GROWTH_H_
