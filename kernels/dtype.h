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

// Complex numbers are a real part, then an imaginary one, as std::complex has them.
enum class DType : uint8_t { kFloat32, kFloat64, kComplex64, kComplex128 };

inline constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kComplex64,
                                    DType::kComplex128};
inline constexpr EnumSet<DType> kRealTypes = {DType::kFloat32, DType::kFloat64};
inline constexpr EnumSet<DType> kAllTypes = {DType::kFloat32, DType::kFloat64, DType::kComplex64,
                                             DType::kComplex128};

constexpr bool IsComplex(DType dtype) { return dtype >= DType::kComplex64; }

// The type of a number's parts: of the type itself where that is real.
constexpr DType RealOf(DType dtype) {
  const bool single = dtype == DType::kFloat32 || dtype == DType::kComplex64;
  return single ? DType::kFloat32 : DType::kFloat64;
}

// The complex type with such parts.
constexpr DType ComplexOf(DType dtype) {
  return RealOf(dtype) == DType::kFloat32 ? DType::kComplex64 : DType::kComplex128;
}

// float64 or complex128: the type in which residuals are taken and solutions refined.
constexpr DType WideOf(DType dtype) {
  return IsComplex(dtype) ? DType::kComplex128 : DType::kFloat64;
}

// Bytes of one element.
constexpr size_t SizeOf(DType dtype) {
  const size_t part = RealOf(dtype) == DType::kFloat32 ? 4 : 8;
  return IsComplex(dtype) ? 2 * part : part;
}

// "f32", "f64", "c64" or "c128": on the command line, in labels and in the benchmark tables.
constexpr std::string_view NameOf(DType dtype) {
  constexpr std::string_view kNames[] = {"f32", "f64", "c64", "c128"};
  return kNames[static_cast<int>(dtype)];
}

// Unit roundoff of the parts, as in the definition of the factor ratio: 2^-24 or 2^-53.
constexpr double UnitRoundoff(DType dtype) {
  return RealOf(dtype) == DType::kFloat32 ? 0x1p-24 : 0x1p-53;
}

// Largest magnitude of a part that still rounds to a finite value of `dtype`.
constexpr double LargestConvertible(DType dtype) {
  // Half a unit in the last place above FLT_MAX, and what ties to even there, becomes Inf.
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
// float of float and std::complex<float>, double of the others.
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

// Calls f(TypeTag<float>{}) or f(TypeTag<double>{}). `dtype` is real.
template <class F>
decltype(auto) DispatchReal(DType dtype, F&& f) {
  assert(!IsComplex(dtype));
  if (dtype == DType::kFloat32) return f(TypeTag<float>{});
  return f(TypeTag<double>{});
}

// Calls f(TypeTag<T>{}) with the T of `dtype`: here and above a run-time type becomes a template
// argument, and nowhere else.
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

}  // namespace crout

#endif  // CROUT_KERNELS_DTYPE_H_
