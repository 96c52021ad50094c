// The rule by which the caller is warned of a result, whichever job made it.
//
// A measured backward error decides. Where none was measured, pivot growth does. A condition
// number, or a signal of one, decides whether the matrix may as well be singular.
#ifndef CROUT_KERNELS_NUMERICS_JUDGMENT_H_
#define CROUT_KERNELS_NUMERICS_JUDGMENT_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/dtype.h"
#include "kernels/numerics/normalizing_scale.h"

namespace crout {

// Reasons to look at a result before it is used.
struct Doubts {
  bool inaccurate = false;       // the backward error is not accepted, or X is not finite
  bool growth = false;           // no error was measured, and entries grew too much
  bool nearly_singular = false;  // no digit of X need be right
};

// Whether rounding errors of `dtype` that grew this much may be above 1e-4, or growth is NaN.
inline bool IsGrowthHarmful(double growth, DType dtype) {
  constexpr double kMost = 1e-4;
  return !(growth * UnitRoundoff(dtype) <= kMost);
}

// Whether a measured error is acceptable. NaN is not.
inline bool IsAccepted(double backward_error, double accepted) {
  return backward_error <= accepted;
}

// Whether a matrix of this condition number, or lower bound of one, is singular for practical
// purposes: the number is at least 1 / (m u), or NaN. m is the order, up to 256 in double precision
// and 16 in single: condition numbers of random matrices grow with the order and reach 1 / (n u) in
// single precision, with accurate solutions.
inline bool IsNearlySingular(double condition, DType dtype, int64_t n) {
  const int64_t most = RealOf(dtype) == DType::kFloat64 ? 256 : 16;
  const auto order = static_cast<double>(std::clamp<int64_t>(n, 1, most));
  return !(condition * order * UnitRoundoff(dtype) < 1);
}

// A signal shows about this fraction of a condition number: of Hilbert's matrix of order 14, whose
// condition number is 5e17, the pivots show 3e14.
inline constexpr double kShownOfCondition = 1.0 / 16;

// What the pivots of a dense factor show of the condition number: the largest over the smallest,
// over kShownOfCondition. Growth does not count: the largest is at most `max_abs`, of the matrix
// that was factored.
CROUT_HOST_DEVICE inline double PivotCondition(double min_pivot, double max_pivot, double max_abs) {
  const double largest = max_pivot < max_abs ? max_pivot : max_abs;
  if (min_pivot > 0) return largest / min_pivot / kShownOfCondition;
  return largest > 0 ? std::numeric_limits<double>::infinity() : 1;
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_JUDGMENT_H_
