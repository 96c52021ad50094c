// SPDX-License-Identifier: Apache-2.0

// Operations of kernels that handle real and complex numbers alike: kernels/scalar.h for the
// kernels' types (DeviceType), and instructions that CUDA provides for real numbers only.
#ifndef CROUT_KERNELS_CUDA_DEVICE_SCALAR_CUH_
#define CROUT_KERNELS_CUDA_DEVICE_SCALAR_CUH_

#include <type_traits>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

// Returns |x|, or |Re x| + |Im x| for a complex number. Used to choose pivots and to measure
// components. NaN if x is NaN.
template <class T>
__device__ RealPart<T> Abs1(T x) {
  if constexpr (kIsComplex<T>) {
    return fabs(x.re) + fabs(x.im);
  } else {
    return fabs(x);
  }
}

template <class T>
__device__ bool IsFinite(T x) {
  if constexpr (kIsComplex<T>) {
    return isfinite(x.re) && isfinite(x.im);
  } else {
    return isfinite(x);
  }
}

// Converts x to float64, exactly.
template <class T>
__device__ WideType<T> ToFloat64(T x) {
  return static_cast<WideType<T>>(x);
}

// The larger of |Re x| and |Im x|; never exceeds the range of the parts. A NaN in one of the parts
// may be lost.
template <class T>
__device__ RealPart<T> LargestPart(T x) {
  if constexpr (kIsComplex<T>) {
    return fmax(fabs(x.re), fabs(x.im));
  } else {
    return fabs(x);
  }
}

// Returns |x| in float64, without intermediate underflow or overflow.
template <class T>
__device__ double Modulus(T x) {
  if constexpr (kIsComplex<T>) {
    const double re = x.re;
    const double im = x.im;
    const double square = re * re + im * im;
    constexpr double kSmall = 0x1p-960;  // bounds for squares that lose no digits
    constexpr double kLarge = 0x1p960;
    return square > kSmall && square < kLarge ? sqrt(square) : hypot(re, im);
  } else {
    return fabs(static_cast<double>(x));
  }
}

// c + a b. For complex numbers, two fused operations per part.
template <class T>
__device__ T PlusProduct(T c, T a, T b) {
  if constexpr (kIsComplex<T>) {
    return {c.re + a.re * b.re - a.im * b.im, c.im + a.re * b.im + a.im * b.re};
  } else {
    return c + a * b;
  }
}

// c - a b. For complex numbers, two fused operations per part; the operators need three because
// they round the product first.
template <class T>
__device__ T MinusProduct(T c, T a, T b) {
  if constexpr (kIsComplex<T>) {
    return {c.re - a.re * b.re + a.im * b.im, c.im - a.re * b.im - a.im * b.re};
  } else {
    return c - a * b;
  }
}

// Shuffle returns lane `from`'s x. ShuffleXor returns the x of the lane whose index differs in the
// bits of `lanes`. Called by the whole warp.
template <class T>
__device__ T Shuffle(T x, int from) {
  if constexpr (kIsComplex<T>) {
    return {__shfl_sync(kAllLanes, x.re, from), __shfl_sync(kAllLanes, x.im, from)};
  } else {
    return __shfl_sync(kAllLanes, x, from);
  }
}
template <class T>
__device__ T ShuffleXor(T x, int lanes) {
  if constexpr (kIsComplex<T>) {
    return {__shfl_xor_sync(kAllLanes, x.re, lanes), __shfl_xor_sync(kAllLanes, x.im, lanes)};
  } else {
    return __shfl_xor_sync(kAllLanes, x, lanes);
  }
}

// Loads *from past the L1 cache: reads data that other blocks wrote before this block synchronized
// with them.
template <class T>
__device__ T LoadFresh(const T* from) {
  if constexpr (kIsComplex<T>) {
    using Pair = std::conditional_t<std::is_same_v<RealPart<T>, float>, float2, double2>;
    const Pair value = __ldcg(reinterpret_cast<const Pair*>(from));
    return {value.x, value.y};
  } else {
    return __ldcg(from);
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_SCALAR_CUH_
