// SPDX-License-Identifier: Apache-2.0

// Operations common to real and complex numbers.
#ifndef CROUT_KERNELS_SCALAR_H_
#define CROUT_KERNELS_SCALAR_H_

#include <algorithm>
#include <cmath>
#include <complex>

#include "kernels/dtype.h"

namespace crout {

// Returns the complex conjugate; a real number is unchanged. (std::conj converts real numbers to
// complex.)
template <class T>
constexpr T Conj(T x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// Returns |Re x| + |Im x|, LAPACK's CABS1 for pivot choice and componentwise errors. It lies
// between |x| and sqrt(2) |x| and needs no square root.
template <class T>
RealPart<T> Abs1(T x) {
  if constexpr (kIsComplex<T>) {
    return std::abs(x.real()) + std::abs(x.imag());
  } else {
    return std::abs(x);
  }
}

// Returns the larger of |Re x| and |Im x|, which cannot overflow. A NaN in one part may be lost.
template <class T>
RealPart<T> LargestPart(T x) {
  if constexpr (kIsComplex<T>) {
    return std::max(std::abs(x.real()), std::abs(x.imag()));
  } else {
    return std::abs(x);
  }
}

template <class T>
bool IsFinite(T x) {
  if constexpr (kIsComplex<T>) {
    return std::isfinite(x.real()) && std::isfinite(x.imag());
  } else {
    return std::isfinite(x);
  }
}

// Converts x to another precision, or to complex. A complex x cannot be converted to a real type.
template <class To, class From>
constexpr To ConvertTo(From x) {
  if constexpr (kIsComplex<From>) {
    using Part = RealPart<To>;
    return To(static_cast<Part>(x.real()), static_cast<Part>(x.imag()));
  } else {
    return To(static_cast<RealPart<To>>(x));
  }
}

// The float64 counterpart of T: double or std::complex<double>.
template <class T>
using WideType = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;

template <class T>
WideType<T> ToFloat64(T x) {
  return ConvertTo<WideType<T>>(x);
}

// Returns |x| in float64, without intermediate underflow or overflow.
template <class T>
double Modulus(T x) {
  if constexpr (kIsComplex<T>) {
    const double re = x.real();
    const double im = x.imag();
    const double square = re * re + im * im;
    constexpr double kSmall = 0x1p-960;  // squares above this lost no digits to underflow
    constexpr double kLarge = 0x1p960;
    return square > kSmall && square < kLarge ? std::sqrt(square) : std::hypot(re, im);
  } else {
    return std::abs(static_cast<double>(x));
  }
}

}  // namespace crout

#endif  // CROUT_KERNELS_SCALAR_H_
