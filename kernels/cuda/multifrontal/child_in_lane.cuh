// SPDX-License-Identifier: Apache-2.0

// Children of a front, one per lane of a warp, so that many are looked up at once.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_CHILD_IN_LANE_CUH_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_CHILD_IN_LANE_CUH_

#include <cstdint>

#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

template <class T>
struct ChildInLane {
  const T* from = nullptr;         // the child's contribution
  const int32_t* place = nullptr;  // places of the child's border in the front; d2 elements
  int32_t d2 = 0;

  // Returns the child of lane `lane` in every lane. Called by the whole warp.
  __device__ ChildInLane FromLane(int lane) const {
    return {Broadcast(from, lane), Broadcast(place, lane), __shfl_sync(kAllLanes, d2, lane)};
  }

 private:
  template <class P>
  static __device__ P* Broadcast(P* pointer, int lane) {
    const auto bits = reinterpret_cast<unsigned long long>(pointer);
    return reinterpret_cast<P*>(__shfl_sync(kAllLanes, bits, lane));
  }
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_CHILD_IN_LANE_CUH_
