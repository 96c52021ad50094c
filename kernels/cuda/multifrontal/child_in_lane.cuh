// Children of a front, each known to one lane of a warp: many are looked up at once.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_CHILD_IN_LANE_CUH_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_CHILD_IN_LANE_CUH_

#include <cstdint>

#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

template <class T>
struct ChildInLane {
  const T* from = nullptr;         // what it left
  const int32_t* place = nullptr;  // where its border is in the front, d2 places
  int32_t d2 = 0;

  // That lane's, in every lane. By the whole warp.
  __device__ ChildInLane Of(int lane) const {
    return {Given(from, lane), Given(place, lane), __shfl_sync(kAllLanes, d2, lane)};
  }

 private:
  template <class P>
  static __device__ P* Given(P* pointer, int lane) {
    const auto bits = reinterpret_cast<unsigned long long>(pointer);
    return reinterpret_cast<P*>(__shfl_sync(kAllLanes, bits, lane));
  }
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_CHILD_IN_LANE_CUH_
