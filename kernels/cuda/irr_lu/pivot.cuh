// SPDX-License-Identifier: Apache-2.0

// Chooses a pivot, perturbs it if it is too small, and divides by it.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_PIVOT_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_PIVOT_CUH_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cuda/crout_lu/pivot_search.cuh"
#include "kernels/cuda/device/reciprocal.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

// An element's KeyOf and its row's current position. The default is no candidate and compares below
// all others.
struct PivotCandidate {
  static constexpr int kNoPlace = 0x7fffffff;

  uint64_t key = 0;
  int place = kNoPlace;

  __device__ void Take(uint64_t other_key, int other_place) {
    if (other_key < key || (other_key == key && other_place > place)) return;
    key = other_key;
    place = other_place;
  }
};

// Compares the low words, then the rows. Rarely needed, so not inlined.
static __device__ __noinline__ unsigned BreakTieByPlace(uint64_t key, int place,
                                                        unsigned best_high) {
  const auto low = static_cast<unsigned>(key);
  bool tied = static_cast<unsigned>(key >> 32) == best_high;
  const unsigned best_low = __reduce_max_sync(kAllLanes, tied ? low : 0U);
  tied = tied && low == best_low;
  // The smallest place has the largest difference to kNoPlace.
  const auto left = static_cast<unsigned>(PivotCandidate::kNoPlace - place);
  const unsigned most_left = __reduce_max_sync(kAllLanes, tied ? left : 0U);
  tied = tied && left == most_left;
  const unsigned lanes = __ballot_sync(kAllLanes, tied);
  return lanes & -lanes;
}

// Returns the lane with the largest key as a mask; among equal keys the lane of the first row, like
// LAPACK.
__device__ inline unsigned BestLane(const PivotCandidate& of_lane) {
  const auto high = static_cast<unsigned>(of_lane.key >> 32);
  const unsigned best = __reduce_max_sync(kAllLanes, high);
  const unsigned lanes = __ballot_sync(kAllLanes, high == best);
  return (lanes & (lanes - 1)) != 0 ? BreakTieByPlace(of_lane.key, of_lane.place, best) : lanes;
}

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
  T reciprocal_;  // reciprocal of pivot * scale_
  RealPart<T> scale_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_PIVOT_CUH_
