// SPDX-License-Identifier: Apache-2.0

// Element types of matrices and factors.
#ifndef CROUT_KERNELS_DTYPE_H_
#define CROUT_KERNELS_DTYPE_H_

#include <cassert>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "kernels/util/enum_set.h"

namespace crout {

// Complex elements store the real part first, as std::complex does.
enum class DType : uint8_t { kFloat32, kFloat64, kComplex64, kComplex128 };

inline constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kComplex64,
                                    DType::kComplex128};
inline constexpr EnumSet<DType> kRealTypes = {DType::kFloat32, DType::kFloat64};
inline constexpr EnumSet<DType> kAllTypes = {DType::kFloat32, DType::kFloat64, DType::kComplex64,
                                             DType::kComplex128};

constexpr bool IsComplex(DType dtype) { return dtype >= DType::kComplex64; }

// Returns the type of the real and imaginary parts. A real type maps to itself.
constexpr DType RealOf(DType dtype) {
  const bool single = dtype == DType::kFloat32 || dtype == DType::kComplex64;
  return single ? DType::kFloat32 : DType::kFloat64;
}

// Returns the complex type whose parts have the precision of `dtype`.
constexpr DType ComplexOf(DType dtype) {
  return RealOf(dtype) == DType::kFloat32 ? DType::kComplex64 : DType::kComplex128;
}

// Returns float64 or complex128, the type of residuals and of solutions in refinement.
constexpr DType WideOf(DType dtype) {
  return IsComplex(dtype) ? DType::kComplex128 : DType::kFloat64;
}

// Returns the bytes of one element.
constexpr size_t SizeOf(DType dtype) {
  const size_t part = RealOf(dtype) == DType::kFloat32 ? 4 : 8;
  return IsComplex(dtype) ? 2 * part : part;
}

// Returns "f32", "f64", "c64" or "c128", as used on the command line and in metric labels and
// tables.
constexpr std::string_view NameOf(DType dtype) {
  constexpr std::string_view kNames[] = {"f32", "f64", "c64", "c128"};
  return kNames[static_cast<int>(dtype)];
}

// Returns the unit roundoff of the parts, 2^-24 or 2^-53.
constexpr double UnitRoundoff(DType dtype) {
  return RealOf(dtype) == DType::kFloat32 ? 0x1p-24 : 0x1p-53;
}

// Returns the largest magnitude of a part that rounds to a finite value of `dtype`.
constexpr double LargestConvertible(DType dtype) {
  // FLT_MAX plus half a unit in the last place ties to even, which is Inf. This is the double below
  // it.
  constexpr double kBelowFloatOverflow = 0x1.fffffefffffffp127;
  return RealOf(dtype) == DType::kFloat32 ? kBelowFloatOverflow
                                          : std::numeric_limits<double>::max();
}

template <class T>
inline constexpr bool kIsComplex = false;
template <class Part>
inline constexpr bool kIsComplex<std::complex<Part>> = true;

template <class T>
struct PartOf {
  using type = T;
};
template <class Part>
struct PartOf<std::complex<Part>> {
  using type = Part;
};
// float for float and std::complex<float>, double otherwise.
template <class T>
using RealPart = typename PartOf<std::remove_const_t<T>>::type;

template <class T>
inline constexpr DType kDTypeOf = kIsComplex<T> ? ComplexOf(kDTypeOf<RealPart<T>>)
                                                : DType::kFloat64;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<float>{}) or f(TypeTag<double>{}). `dtype` must be real.
template <class F>
decltype(auto) DispatchReal(DType dtype, F&& f) {
  assert(!IsComplex(dtype));
  if (dtype == DType::kFloat32) return f(TypeTag<float>{});
  return f(TypeTag<double>{});
}

// Calls f(TypeTag<T>{}) with the element type T of `dtype`. This function and DispatchReal are the
// only places that convert a run-time type to a template argument.
template <class F>
decltype(auto) DispatchDType(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(TypeTag<float>{});
    case DType::kComplex64:
      return f(TypeTag<std::complex<float>>{});
    case DType::kComplex128:
      return f(TypeTag<std::complex<double>>{});
    case DType::kFloat64:
      break;
  }
  return f(TypeTag<double>{});
}

// LAPACK laqge's bounds, safe_min / eps and its inverse. A matrix whose largest entry is outside
// this range may underflow or overflow during elimination and must be scaled or refused.
struct SafeRange {
  double least;
  double most;

  // Returns false for NaN.
  bool contains(double magnitude) const { return magnitude >= least && magnitude <= most; }
};

inline SafeRange SafeRangeOf(DType dtype) {
  const auto range = [](auto real) {
    using Limits = std::numeric_limits<decltype(real)>;
    const double least = double{Limits::min()} / double{Limits::epsilon()};
    return SafeRange{least, 1 / least};
  };
  return RealOf(dtype) == DType::kFloat32 ? range(0.0F) : range(0.0);
}

}  // namespace crout

#endif  // CROUT_KERNELS_DTYPE_H_
