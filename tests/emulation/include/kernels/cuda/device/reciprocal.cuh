// Reciprocals of the host, in place of the device's.
#ifndef CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_RECIPROCAL_CUH_
#define CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_RECIPROCAL_CUH_

#include <cmath>

namespace crout::cuda {

template <class T>
bool HasReciprocal(T x) {
  return std::isnormal(x) && std::isnormal(1 / x);
}
template <class T>
T Reciprocal(T x) {
  return 1 / x;
}
template <class T>
T Divide(T a, T b) {
  return a / b;
}

}  // namespace crout::cuda

#endif  // CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_RECIPROCAL_CUH_
