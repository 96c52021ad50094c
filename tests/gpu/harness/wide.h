// SPDX-License-Identifier: Apache-2.0

// Converts a kernel's numbers to float64 or complex128 on the host.
#ifndef CROUT_TESTS_GPU_HARNESS_WIDE_H_
#define CROUT_TESTS_GPU_HARNESS_WIDE_H_

#include <complex>
#include <limits>
#include <type_traits>

#include "kernels/cuda/device/complex.h"

namespace crout::cuda {

// The host's float64 or complex128, for a real or complex type T of kernels.
template <class T>
using HostWide = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;

template <class T>
HostWide<T> ToWide(T x) {
  if constexpr (kIsComplex<T>) {
    return {x.re, x.im};
  } else {
    return x;
  }
}

inline double Conjugated(double x) { return x; }
inline std::complex<double> Conjugated(std::complex<double> x) { return std::conj(x); }

// A number whose parts are NaN.
template <class T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
template <class Part>
inline constexpr Complex<Part> kNan<Complex<Part>> = {kNan<Part>, kNan<Part>};

}  // namespace crout::cuda

#endif  // CROUT_TESTS_GPU_HARNESS_WIDE_H_
