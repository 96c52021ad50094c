// SPDX-License-Identifier: Apache-2.0

// Replaces the device's reciprocals by the host's.
#ifndef CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_RECIPROCAL_CUH_
#define CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_RECIPROCAL_CUH_

#include <cmath>

#include "kernels/cuda/device/complex.h"

namespace crout::cuda {

template <class T>
bool HasReciprocal(T x) {
  return std::isnormal(x) && std::isnormal(1 / x);
}
template <class T>
T Reciprocal(T x) {
  return 1 / x;
}
template <class Part>
bool HasReciprocal(const Complex<Part>& x) {
  const Part square = x.re * x.re + x.im * x.im;
  return std::isnormal(square) && std::isnormal(1 / square);
}
template <class Part>
Complex<Part> Reciprocal(const Complex<Part>& x) {
  const Part r = 1 / (x.re * x.re + x.im * x.im);
  return {x.re * r, -x.im * r};
}
template <class T>
T Divide(T a, T b) {
  return a / b;
}

}  // namespace crout::cuda

#endif  // CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_RECIPROCAL_CUH_
