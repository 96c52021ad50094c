// Pivots that are too small, made larger.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_RAISE_PIVOT_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_RAISE_PIVOT_CUH_

#include <limits>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/irr_lu/lu_kernels.h"

namespace crout::cuda {

// The pivot of column k, or one of the size that it must have. `tells`: whether this thread, one of
// those that ask, says that it was raised. NaN stays.
template <class T>
__device__ T RaisePivot(T pivot, const LeastPivots<T>& bounds, int k, bool tells) {
  if (bounds.least == nullptr) return pivot;
  const RealPart<T> least = bounds.least[k];
  const RealPart<T> size = Abs1(pivot);
  if (!(size < least)) return pivot;
  const bool zero = size == 0;
  if (tells) {
    bounds.raised[k] = zero ? LeastPivots<T>::kRaisedFromZero : LeastPivots<T>::kRaised;
  }
  if (zero) return T{least};
  if constexpr (kIsComplex<T>) {
    // Of the smallest of numbers the quotient might be infinite.
    if (size < std::numeric_limits<RealPart<T>>::min()) return T{least};
    return pivot * (least / size);
  } else {
    return copysign(least, pivot);
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_RAISE_PIVOT_CUH_
