// Element types of matrices and factors.
#ifndef CROUT_KERNELS_DTYPE_H_
#define CROUT_KERNELS_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace crout {

enum class DType : uint8_t { kFloat32, kFloat64 };

// Bytes of one element.
constexpr size_t SizeOf(DType dtype) { return dtype == DType::kFloat32 ? 4 : 8; }

// "f32" or "f64": on the command line, in labels and in the benchmark tables.
constexpr std::string_view NameOf(DType dtype) { return dtype == DType::kFloat32 ? "f32" : "f64"; }

// Unit roundoff, as in the definition of the factor ratio: 2^-24 or 2^-53.
constexpr double UnitRoundoff(DType dtype) { return dtype == DType::kFloat32 ? 0x1p-24 : 0x1p-53; }

// Largest magnitude that still rounds to a finite value of `dtype`.
constexpr double LargestConvertible(DType dtype) {
  // Half a unit in the last place above FLT_MAX, and what ties to even there, becomes Inf.
  constexpr double kBelowFloatOverflow = 0x1.fffffefffffffp127;
  return dtype == DType::kFloat32 ? kBelowFloatOverflow : std::numeric_limits<double>::max();
}

template <class T>
inline constexpr DType kDTypeOf = std::is_same_v<T, float> ? DType::kFloat32 : DType::kFloat64;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<float>{}) or f(TypeTag<double>{}): the one place where a run-time type becomes a
// template argument.
template <class F>
decltype(auto) DispatchDType(DType dtype, F&& f) {
  if (dtype == DType::kFloat32) return f(TypeTag<float>{});
  return f(TypeTag<double>{});
}

}  // namespace crout

#endif  // CROUT_KERNELS_DTYPE_H_
