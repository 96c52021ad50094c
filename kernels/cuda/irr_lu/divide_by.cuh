// SPDX-License-Identifier: Apache-2.0

// Repeated division by the same number.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_DIVIDE_BY_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_DIVIDE_BY_CUH_

#include <type_traits>

#include "kernels/cuda/device/reciprocal.cuh"
#include "kernels/cuda/device/scalar.cuh"

namespace crout::cuda {

// Computes x / pivot to a few roundings, without a branch or a call, as a product with the
// reciprocal of the pivot. A power of two scales the pivot into the range in which its reciprocal
// exists.
template <class T>
class DivideBy {
 public:
  DivideBy() = default;  // for uninitialized shared memory
  __device__ explicit DivideBy(T pivot) {
    using Part = RealPart<T>;
    constexpr bool kDouble = std::is_same_v<Part, double>;
    constexpr auto kUp = static_cast<Part>(kDouble ? 0x1p600 : 0x1p100);
    constexpr auto kDown = static_cast<Part>(kDouble ? 0x1p-544 : 0x1p-74);
    scale_ = HasReciprocal(pivot) ? 1 : LargestPart(pivot) < 1 ? kUp : kDown;
    reciprocal_ = Reciprocal(pivot * scale_);
  }
  __device__ T operator()(T x) const { return x * reciprocal_ * scale_; }

 private:
  T reciprocal_;  // of pivot * scale_
  RealPart<T> scale_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_DIVIDE_BY_CUH_
