// SPDX-License-Identifier: Apache-2.0

// Conversions and random values of the element types T of device code: float, double and Complex.
#ifndef CROUT_TESTS_EMULATION_DEVICE_NUMBERS_H_
#define CROUT_TESTS_EMULATION_DEVICE_NUMBERS_H_

#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/cuda/device/complex.h"
#include "tests/support/matrices/gallery.h"

namespace crout::cuda {

// The host's float64 or complex128, for a real or complex T.
template <class T>
using Wide = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;
inline double ToHostFloat64(double x) { return x; }
template <class Part>
std::complex<double> ToHostFloat64(const Complex<Part>& x) {
  return {x.re, x.im};
}

// Rounds both parts of `x` to T.
template <class T>
T Narrowed(const Wide<T>& x) {
  using Part = RealPart<T>;
  if constexpr (kIsComplex<T>) {
    return {static_cast<Part>(x.real()), static_cast<Part>(x.imag())};
  } else {
    return static_cast<Part>(x);
  }
}

// Returns a rows x columns matrix, column-major. Real and imaginary parts are uniform in [-1, 1).
template <class T>
std::vector<T> Random(int64_t rows, int64_t columns, uint64_t seed = 3) {
  const testing::HostMatrix parts = testing::RandomMatrix(rows, 2 * columns, seed);
  std::vector<T> a;
  for (int64_t e = 0; e < rows * columns; ++e) {
    using Part = RealPart<T>;
    if constexpr (kIsComplex<T>) {
      a.push_back({static_cast<Part>(parts[2 * e]), static_cast<Part>(parts[2 * e + 1])});
    } else {
      a.push_back(static_cast<Part>(parts[e]));
    }
  }
  return a;
}

}  // namespace crout::cuda

#endif  // CROUT_TESTS_EMULATION_DEVICE_NUMBERS_H_
