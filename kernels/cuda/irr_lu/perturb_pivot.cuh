// SPDX-License-Identifier: Apache-2.0

// Perturbs pivots that are too small.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_PERTURB_PIVOT_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_PERTURB_PIVOT_CUH_

#include <limits>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/irr_lu/lu_kernels.h"

namespace crout::cuda {

// Returns the pivot of column k, perturbed to the size of its bound if it is smaller. NaN is
// returned unchanged. If `records`, this thread records the perturbation; set it in exactly one of
// the calling threads.
template <class T>
__device__ T PerturbPivot(T pivot, const MinPivots<T>& bounds, int k, bool records) {
  if (bounds.least == nullptr) return pivot;
  const RealPart<T> least = bounds.least[k];
  const RealPart<T> size = Abs1(pivot);
  if (!(size < least)) return pivot;
  const bool zero = size == 0;
  if (records) {
    bounds.pivot_flags[k] = zero ? MinPivots<T>::kPerturbedZero : MinPivots<T>::kPerturbed;
  }
  if (zero) return T{least};
  if constexpr (kIsComplex<T>) {
    // For a subnormal size, the quotient might be infinite.
    if (size < std::numeric_limits<RealPart<T>>::min()) return T{least};
    return pivot * (least / size);
  } else {
    return copysign(least, pivot);
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_PERTURB_PIVOT_CUH_
