// Device code that the kernels of the iterative Crout method share.
#ifndef CROUT_KERNELS_CUDA_ICM_DEVICE_CUH_
#define CROUT_KERNELS_CUDA_ICM_DEVICE_CUH_

#include "kernels/cuda/icm_state.h"

namespace crout {

__device__ inline bool Halted(const IcmState* state) {
  return state->stopped != 0 || state->end != static_cast<int32_t>(IcmEnd::kDone);
}

// Whether |l_jj| has to give way to the column's largest candidate. NaN always has, but where no
// pivoting is allowed.
__device__ inline bool IsBad(const PivotCriterion& rule, double pivot, double largest) {
  switch (rule.rule) {
    case PivotRule::kNone:
      return false;
    case PivotRule::kPartial:
      return !(pivot >= largest);
    case PivotRule::kInterval:
      return !(pivot > rule.low && pivot <= rule.high);
    case PivotRule::kThreshold:
      return !(pivot >= rule.threshold * largest);
  }
  return true;
}

// Not one that is not finite: it is never the last word of an iteration.
template <class T>
__device__ bool HasConverged(T before, T after, double tolerance) {
  if (!isfinite(after)) return false;
  return before == after || fabs(double{after} - double{before}) <= tolerance * fabs(double{after});
}

template <class T>
__device__ bool SameBits(T a, T b) {
  return a == b || (isnan(a) && isnan(b));
}

__device__ inline void End(IcmState* state, IcmEnd end, unsigned long long position) {
  atomicMin(&state->position, position);
  state->end = static_cast<int32_t>(end);
}

// Element (i, j) of the start with the unit diagonal in U, whichever factor has it there.
template <class T>
__device__ T StartElement(const IcmStart<T>& start, int64_t i, int64_t j) {
  const int64_t from = start.origin[i];
  const T value = start.lu[from + j * start.ld];
  if (start.unit_in_u || i == j) return value;
  return i > j ? value * start.lu[start.origin[j] + j * start.ld]
               : value / start.lu[from + i * start.ld];
}

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_ICM_DEVICE_CUH_
