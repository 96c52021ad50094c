// Decisions about single elements that host and device share. Callable from device code.
#ifndef CROUT_KERNELS_ICM_PIVOT_RULE_H_
#define CROUT_KERNELS_ICM_PIVOT_RULE_H_

#include <complex>

#include "kernels/lu_parameters.h"

namespace crout {

// Whether a diagonal element must give way to its column's largest candidate. Both arguments are
// absolute values (Abs1 of complex numbers, which chooses the candidate too): of l_jj, and the
// largest of l_ij, i >= j (read only by the threshold rule). Zero and NaN are bad by every rule but
// kNone.
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

// The same of complex iterates by their parts, both measured by |Re| + |Im| (Abs1), which needs no
// square root.
template <class Part>
constexpr bool HasConverged(Part before_re, Part before_im, Part now_re, Part now_im,
                            Part tolerance) {
  const auto abs = [](Part x) { return x < 0 ? -x : x; };
  const Part change = abs(now_re - before_re) + abs(now_im - before_im);
  // Each part by itself: their sum may be beyond the range, and times a tolerance of 0 NaN.
  const Part size = tolerance * abs(now_re) + tolerance * abs(now_im);
  return change - change == 0 && change <= size;
}

template <class Part>
constexpr bool HasConverged(const std::complex<Part>& before, const std::complex<Part>& now,
                            Part tolerance) {
  return HasConverged(before.real(), before.imag(), now.real(), now.imag(), tolerance);
}

}  // namespace crout

#endif  // CROUT_KERNELS_ICM_PIVOT_RULE_H_
