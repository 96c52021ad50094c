// SPDX-License-Identifier: Apache-2.0

// Finds the pivot among the candidates of a warp's lanes when rows are not in lane order.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_PIVOT_CANDIDATE_CUH_
#define CROUT_KERNELS_CUDA_IRR_LU_PIVOT_CANDIDATE_CUH_

#include <cstdint>

#include "kernels/cuda/crout_lu/pivot_search.cuh"
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

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_PIVOT_CANDIDATE_CUH_
