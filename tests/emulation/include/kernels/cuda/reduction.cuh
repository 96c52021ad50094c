// What panels need of the device's reductions.
#ifndef CROUT_KERNELS_CUDA_REDUCTION_CUH_
#define CROUT_KERNELS_CUDA_REDUCTION_CUH_

#include <bit>
#include <cmath>
#include <cstdint>

namespace crout {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

inline unsigned long long AbsBits(double x) {
  return std::bit_cast<unsigned long long>(std::fabs(x));
}

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_REDUCTION_CUH_
