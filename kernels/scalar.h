// What code for real and complex numbers alike asks of a number.
#ifndef CROUT_KERNELS_SCALAR_H_
#define CROUT_KERNELS_SCALAR_H_

#include <algorithm>
#include <cmath>
#include <complex>

#include "kernels/dtype.h"

namespace crout {

// The complex conjugate; a real number itself. (std::conj makes complex numbers of real ones.)
template <class T>
constexpr T Conj(T x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// |Re x| + |Im x|, by which LAPACK chooses pivots and measures components (its CABS1): between |x|
// and sqrt(2) |x|, without a square root.
template <class T>
RealPart<T> Abs1(T x) {
  if constexpr (kIsComplex<T>) {
    return std::abs(x.real()) + std::abs(x.imag());
  } else {
    return std::abs(x);
  }
}

// The larger of |Re x| and |Im x|: never beyond the range of the parts. A NaN in either may be
// lost.
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

// x in another precision, or as a complex number. A complex number has no conversion to a real one.
template <class To, class From>
constexpr To ConvertTo(From x) {
  if constexpr (kIsComplex<From>) {
    using Part = RealPart<To>;
    return To(static_cast<Part>(x.real()), static_cast<Part>(x.imag()));
  } else {
    return To(static_cast<RealPart<To>>(x));
  }
}

// T in float64: double or std::complex<double>.
template <class T>
using WideType = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;

template <class T>
WideType<T> Widen(T x) {
  return ConvertTo<WideType<T>>(x);
}

// |x| in float64, without underflow or overflow on the way.
template <class T>
double Modulus(T x) {
  if constexpr (kIsComplex<T>) {
    const double re = x.real();
    const double im = x.imag();
    const double square = re * re + im * im;
    constexpr double kSmall = 0x1p-960;  // of squares that lost no digits
    constexpr double kLarge = 0x1p960;
    return square > kSmall && square < kLarge ? std::sqrt(square) : std::hypot(re, im);
  } else {
    return std::abs(static_cast<double>(x));
  }
}

}  // namespace crout

#endif  // CROUT_KERNELS_SCALAR_H_
