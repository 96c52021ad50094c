// SPDX-License-Identifier: Apache-2.0

// Decisions about single elements, shared by host and device. Callable from device code.
#ifndef CROUT_KERNELS_ICM_PIVOT_RULE_H_
#define CROUT_KERNELS_ICM_PIVOT_RULE_H_

#include <complex>

#include "kernels/lu_parameters.h"

namespace crout {

// Returns true if a diagonal element must be replaced by the largest candidate of its column.
// Arguments are absolute values (Abs1 for complex numbers, as in the choice of the candidate):
// `diagonal` of l_jj, `largest` the maximum over l_ij, i >= j, used only by the threshold rule.
// Zero and NaN are bad under every rule except kNone.
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

// Returns true if an iterate has converged: it changed by at most `tolerance`, relative to itself.
// Returns false if either value or the change is NaN or Inf.
template <class T>
constexpr bool HasConverged(T before, T now, T tolerance) {
  const T change = now > before ? now - before : before - now;
  const T size = now < 0 ? -now : now;
  return change - change == 0 && change <= tolerance * size;
}

// Same for complex iterates, given by their parts. Change and size are measured by |Re| + |Im|
// (Abs1), which needs no square root.
template <class Part>
constexpr bool HasConverged(Part before_re, Part before_im, Part now_re, Part now_im,
                            Part tolerance) {
  const auto abs = [](Part x) { return x < 0 ? -x : x; };
  const Part change = abs(now_re - before_re) + abs(now_im - before_im);
  // Scales each part separately: the sum may overflow, and Inf times a tolerance of 0 is NaN.
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
