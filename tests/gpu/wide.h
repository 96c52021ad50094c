// SPDX-License-Identifier: Apache-2.0

// Converts numbers of kernels to the widest host type of their kind.
#ifndef CROUT_TESTS_GPU_WIDE_H_
#define CROUT_TESTS_GPU_WIDE_H_

#include <complex>
#include <limits>
#include <type_traits>

#include "kernels/cuda/device/complex.h"

namespace crout::cuda {

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

// NaN; for a complex type, in both parts.
template <class T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
template <class Part>
inline constexpr Complex<Part> kNan<Complex<Part>> = {kNan<Part>, kNan<Part>};

}  // namespace crout::cuda

#endif  // CROUT_TESTS_GPU_WIDE_H_
