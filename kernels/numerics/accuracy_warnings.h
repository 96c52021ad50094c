// SPDX-License-Identifier: Apache-2.0

// The rule by which callers are warned about a result, shared by all jobs.
//
// A measured backward error decides. Without one, pivot growth decides. A condition number, or an
// indicator of one, decides whether the matrix counts as numerically singular.
#ifndef CROUT_KERNELS_NUMERICS_ACCURACY_WARNINGS_H_
#define CROUT_KERNELS_NUMERICS_ACCURACY_WARNINGS_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/dtype.h"
#include "kernels/numerics/normalizing_scale.h"

namespace crout {

// Reasons to doubt a result.
struct AccuracyWarnings {
  bool inaccurate = false;       // the backward error is not accepted, or X is not finite
  bool growth = false;           // no error was measured, and entries grew too much
  bool nearly_singular = false;  // X may have no correct digit
};

// Returns true if rounding errors of `dtype`, amplified by `growth`, may exceed 1e-4, or if growth
// is NaN.
inline bool IsGrowthHarmful(double growth, DType dtype) {
  constexpr double kMax = 1e-4;
  return !(growth * UnitRoundoff(dtype) <= kMax);
}

// Returns true if a measured error is acceptable. NaN is not.
inline bool IsAccepted(double backward_error, double accepted) {
  return backward_error <= accepted;
}

// Returns true if a matrix with this condition number, or lower bound of one, is numerically
// singular: the number is at least 1 / (m u), or NaN. m is the order, capped at 256 in double
// precision and 16 in single. The cap is needed because condition numbers of random matrices grow
// with the order and reach 1 / (n u) in single precision, with accurate solutions.
inline bool IsNearlySingular(double condition, DType dtype, int64_t n) {
  const int64_t most = RealOf(dtype) == DType::kFloat64 ? 256 : 16;
  const auto order = static_cast<double>(std::clamp<int64_t>(n, 1, most));
  return !(condition * order * UnitRoundoff(dtype) < 1);
}

// Typical ratio of the indicator to the condition number. For Hilbert's matrix of order 14, with
// condition number 5e17, the pivots indicate 3e14.
inline constexpr double kShownOfCondition = 1.0 / 16;

// Returns the condition number indicated by the pivots of a dense factor: the ratio of the largest
// to the smallest pivot, divided by kShownOfCondition. To exclude growth, the largest is capped at
// `max_abs`, the largest entry of the factored matrix.
CROUT_HOST_DEVICE inline double PivotCondition(double min_pivot, double max_pivot, double max_abs) {
  const double largest = max_pivot < max_abs ? max_pivot : max_abs;
  if (min_pivot > 0) return largest / min_pivot / kShownOfCondition;
  return largest > 0 ? std::numeric_limits<double>::infinity() : 1;
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_ACCURACY_WARNINGS_H_
