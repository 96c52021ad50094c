// What panels need of the device's reductions.
#ifndef CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_OPS_REDUCTION_CUH_
#define CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_OPS_REDUCTION_CUH_

#include <bit>
#include <cmath>
#include <cstdint>

namespace crout::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

inline unsigned long long AbsBits(double x) {
  return std::bit_cast<unsigned long long>(std::fabs(x));
}

}  // namespace crout::cuda

#endif  // CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_OPS_REDUCTION_CUH_
