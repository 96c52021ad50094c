// Complex numbers in device code: std::complex's arithmetic is not for kernels.
#ifndef CROUT_KERNELS_CUDA_DEVICE_COMPLEX_H_
#define CROUT_KERNELS_CUDA_DEVICE_COMPLEX_H_

#include <cassert>
#include <type_traits>

#include "kernels/dtype.h"

namespace crout::cuda {

// Has std::complex's and cuComplex's layout. Everything is constexpr and so usable in kernels and
// on the host. Products do not repair NaN of infinite factors, as BLAS does not.
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
  // By Smith's method (1962). What it makes on the way is up to twice as large as b's larger part:
  // beyond half of the range the quotient is 0.
  friend constexpr Complex operator/(const Complex& a, const Complex& b) {
    const bool wide = (b.re < 0 ? -b.re : b.re) >= (b.im < 0 ? -b.im : b.im);
    const Part large = wide ? b.re : b.im;
    const Part ratio = (wide ? b.im : b.re) / large;
    const Part scale = large + (wide ? b.im : b.re) * ratio;
    return wide ? Complex((a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale)
                : Complex((a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale);
  }
  // By real numbers: part by part.
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

// T in kernels: Complex for std::complex, else T itself.
template <class T>
using DeviceType = std::conditional_t<kIsComplex<T>, Complex<RealPart<T>>, std::remove_const_t<T>>;

// Calls f(TypeTag<T>{}) with the T that kernels have for `dtype`.
template <class F>
decltype(auto) DispatchDevice(DType dtype, F&& f) {
  return DispatchDType(dtype, [&](auto tag) -> decltype(auto) {
    return f(TypeTag<DeviceType<typename decltype(tag)::type>>{});
  });
}

// T in float64: the type of residuals and refined solutions.
template <class T>
using WideType = std::conditional_t<kIsComplex<T>, Complex<double>, double>;

// Calls f(TypeTag<T>{}) with the T that kernels have for a `dtype` of float64 parts.
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
