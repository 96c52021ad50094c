// SPDX-License-Identifier: Apache-2.0

// Device code shared by the kernels of the iterative Crout method.
#ifndef CROUT_KERNELS_CUDA_ICM_ICM_DEVICE_CUH_
#define CROUT_KERNELS_CUDA_ICM_ICM_DEVICE_CUH_

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/icm/icm_state.h"
#include "kernels/icm/pivot_rule.h"

namespace crout::cuda {

__device__ inline bool Halted(const IcmState* state) {
  return state->stopped != 0 || state->end != static_cast<int32_t>(IcmEnd::kDone);
}

// Like IsBad, for a column whose largest candidate is known: under the partial rule, a pivot that
// is a largest candidate is accepted.
__device__ inline bool IsPivotRejected(const PivotCriterion& rule, double pivot, double largest) {
  if (rule.rule == PivotRule::kPartial) return !(pivot >= largest);
  return IsBad(rule, pivot, largest);
}

template <class T>
__device__ bool SameBits(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return SameBits(a.re, b.re) && SameBits(a.im, b.im);
  } else {
    return a == b || (isnan(a) && isnan(b));
  }
}

// Same rule as in kernels/icm/tolerances.h.
template <class T>
__device__ bool HasConverged(const T& before, const T& now, const IcmTolerances& tolerances) {
  using Real = RealPart<T>;
  const auto relative = static_cast<Real>(tolerances.relative);
  if (tolerances.absolute != 0) {
    const Real change = Abs1(now - before);
    return change - change == 0 &&
           change <= static_cast<Real>(tolerances.absolute) + relative * Abs1(now);
  }
  if constexpr (kIsComplex<T>) {
    return ::crout::HasConverged(before.re, before.im, now.re, now.im, relative);
  } else {
    return ::crout::HasConverged(before, now, relative);
  }
}

__device__ inline void End(IcmState* state, IcmEnd end, unsigned long long position) {
  atomicMin(&state->position, position);
  state->end = static_cast<int32_t>(end);
}

// Element (i, j) of the start, converted to the unit diagonal in U. If d_ii is zero, any estimate
// is acceptable.
template <class T>
__device__ T StartElement(const IcmStart<T>& start, int64_t i, int64_t j) {
  const int64_t from = start.origin[i];
  const T value = start.lu[from + j * start.ld];
  if (start.unit_in_u || i == j) return value;
  if (i > j) return value * start.lu[start.origin[j] + j * start.ld];
  const T d = start.lu[from + i * start.ld];
  return d == T{0} ? value : value / d;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_ICM_DEVICE_CUH_
