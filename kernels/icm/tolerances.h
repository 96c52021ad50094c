// SPDX-License-Identifier: Apache-2.0

// Convergence test of the iterative Crout method with a relative and an absolute tolerance. For
// host code.
#ifndef CROUT_KERNELS_ICM_TOLERANCES_H_
#define CROUT_KERNELS_ICM_TOLERANCES_H_

#include "kernels/icm/pivot_rule.h"
#include "kernels/lu_parameters.h"
#include "kernels/scalar.h"

namespace crout {

template <class Part>
struct Tolerances {
  Part relative = 0;
  Part absolute = 0;

  explicit Tolerances(const LuParameters& parameters)
      : relative(static_cast<Part>(parameters.tolerance)),
        absolute(static_cast<Part>(parameters.absolute_tolerance)) {}
};

// Returns true if the iterate changed by at most absolute + relative |now|, with Abs1 for complex
// numbers. False if the change is NaN or Inf.
template <class T>
bool HasConverged(const T& before, const T& now, const Tolerances<RealPart<T>>& tolerances) {
  if (tolerances.absolute == 0) return HasConverged(before, now, tolerances.relative);
  const RealPart<T> change = Abs1(now - before);
  return change - change == 0 && change <= tolerances.absolute + tolerances.relative * Abs1(now);
}

}  // namespace crout

#endif  // CROUT_KERNELS_ICM_TOLERANCES_H_
