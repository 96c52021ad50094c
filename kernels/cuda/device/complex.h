// SPDX-License-Identifier: Apache-2.0

// Complex numbers for device code; std::complex's arithmetic does not work in kernels.
#ifndef CROUT_KERNELS_CUDA_DEVICE_COMPLEX_H_
#define CROUT_KERNELS_CUDA_DEVICE_COMPLEX_H_

#include <cassert>
#include <type_traits>

#include "kernels/dtype.h"

namespace crout::cuda {

// Has the layout of std::complex and cuComplex. Everything is constexpr and so works in kernels and
// on the host. Like BLAS, products do not correct NaN that result from infinite factors.
template <class Part>
struct alignas(2 * sizeof(Part)) Complex {
  Part re;
  Part im;

  Complex() = default;
  constexpr Complex(Part real, Part imaginary = 0) : re(real), im(imaginary) {}
  template <class Other>
  constexpr explicit Complex(const Complex<Other>& x)
      : re(static_cast<Part>(x.re)), im(static_cast<Part>(x.im)) {}

  constexpr Complex operator-() const { return {-re, -im}; }
  constexpr Complex& operator+=(const Complex& x) { return *this = *this + x; }
  constexpr Complex& operator-=(const Complex& x) { return *this = *this - x; }
  constexpr Complex& operator*=(const Complex& x) { return *this = *this * x; }

  friend constexpr Complex operator+(const Complex& a, const Complex& b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend constexpr Complex operator-(const Complex& a, const Complex& b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend constexpr Complex operator*(const Complex& a, const Complex& b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  // Smith's method (1962). Its intermediate values are up to twice as large as b's larger part; if
  // that part exceeds half of the range, the quotient is 0.
  friend constexpr Complex operator/(const Complex& a, const Complex& b) {
    const bool wide = (b.re < 0 ? -b.re : b.re) >= (b.im < 0 ? -b.im : b.im);
    const Part large = wide ? b.re : b.im;
    const Part ratio = (wide ? b.im : b.re) / large;
    const Part scale = large + (wide ? b.im : b.re) * ratio;
    return wide ? Complex((a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale)
                : Complex((a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale);
  }
  // Operations with a real number, part by part.
  friend constexpr Complex operator*(const Complex& a, Part b) { return {a.re * b, a.im * b}; }
  friend constexpr Complex operator/(const Complex& a, Part b) { return {a.re / b, a.im / b}; }
  friend constexpr bool operator==(const Complex& a, const Complex& b) {
    return a.re == b.re && a.im == b.im;
  }
  friend constexpr bool operator!=(const Complex& a, const Complex& b) { return !(a == b); }
};

}  // namespace crout::cuda

namespace crout {

template <class Part>
inline constexpr bool kIsComplex<cuda::Complex<Part>> = true;
template <class Part>
struct PartOf<cuda::Complex<Part>> {
  using type = Part;
};

namespace cuda {

// The type T in kernels: Complex for std::complex, otherwise T itself.
template <class T>
using DeviceType = std::conditional_t<kIsComplex<T>, Complex<RealPart<T>>, std::remove_const_t<T>>;

// Calls f(TypeTag<T>{}) with the kernels' type T for `dtype`.
template <class F>
decltype(auto) DispatchDevice(DType dtype, F&& f) {
  return DispatchDType(dtype, [&](auto tag) -> decltype(auto) {
    return f(TypeTag<DeviceType<typename decltype(tag)::type>>{});
  });
}

// The float64 counterpart of T: the type of residuals and refined solutions.
template <class T>
using WideType = std::conditional_t<kIsComplex<T>, Complex<double>, double>;

// Calls f(TypeTag<T>{}) with the kernels' type T for `dtype`, whose parts must be float64.
template <class F>
decltype(auto) DispatchWide(DType dtype, F&& f) {
  assert(RealOf(dtype) == DType::kFloat64);
  if (IsComplex(dtype)) return f(TypeTag<Complex<double>>{});
  return f(TypeTag<double>{});
}

template <class T>
constexpr T Conjugate(T x) {
  if constexpr (kIsComplex<T>) {
    return {x.re, -x.im};
  } else {
    return x;
  }
}

}  // namespace cuda
}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_DEVICE_COMPLEX_H_
