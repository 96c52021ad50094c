// Decisions about single elements that host and device share. Callable from device code.
#ifndef CROUT_KERNELS_ICM_PIVOT_RULE_H_
#define CROUT_KERNELS_ICM_PIVOT_RULE_H_

#include "kernels/lu_parameters.h"

namespace crout {

// Whether a diagonal element must give way to its column's largest candidate. Both arguments are
// absolute values: of l_jj, and the largest of l_ij, i >= j (read only by the threshold rule). Zero
// and NaN are bad by every rule but kNone.
constexpr bool IsBad(const PivotCriterion& criterion, double diagonal, double largest) {
  switch (criterion.rule) {
    case PivotRule::kNone:
      return false;
    case PivotRule::kPartial:
      return true;
    case PivotRule::kInterval:
      return !(diagonal > criterion.low && diagonal <= criterion.high);
    case PivotRule::kThreshold:
      return !(diagonal > 0 && diagonal >= criterion.threshold * largest);
  }
  return true;
}

// Whether an iterate has converged: it changed by no more than `tolerance`, relative to itself.
// Never where the change is NaN or Inf, as it is if either value is.
template <class T>
constexpr bool HasConverged(T before, T now, T tolerance) {
  const T change = now > before ? now - before : before - now;
  const T size = now < 0 ? -now : now;
  return change - change == 0 && change <= tolerance * size;
}

}  // namespace crout

#endif  // CROUT_KERNELS_ICM_PIVOT_RULE_H_
