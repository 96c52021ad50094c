// SPDX-License-Identifier: Apache-2.0

// Reciprocals that allow other instructions to run in parallel.
#ifndef CROUT_KERNELS_CUDA_DEVICE_RECIPROCAL_CUH_
#define CROUT_KERNELS_CUDA_DEVICE_RECIPROCAL_CUH_

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

// Returns true if x and 1 / x are far enough inside the normal range for Reciprocal(x).
__device__ inline bool HasReciprocal(double x) {
  const auto exponent = static_cast<unsigned>(AbsBits(x) >> 52);
  return exponent - 32 < 1980;
}
__device__ inline bool HasReciprocal(float x) {
  const unsigned exponent = (__float_as_uint(x) >> 23) & 0xff;
  return exponent - 8 < 236;
}

// Computes 1 / x by Newton's iteration, accurate to the last bit or two. The branches of a division
// would keep other instructions from running in parallel.
__device__ inline double Reciprocal(double x) {
  double r;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));  // accurate to 20 bits
  double e = fma(-x, r, 1.0);
  e = fma(e, e, e);
  r = fma(r, e, r);
  e = fma(-x, r, 1.0);
  return fma(r, e, r);
}
__device__ inline float Reciprocal(float x) {
  float r;
  asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  const float e = fmaf(-x, r, 1.0F);
  return fmaf(r, e, r);
}

// For a complex number, the square of its modulus must be that far inside the range.
__device__ inline bool HasReciprocal(const Complex<double>& x) {
  const auto exponent = static_cast<unsigned>(max(AbsBits(x.re), AbsBits(x.im)) >> 52);
  return exponent - (1023 - 480) < 960;
}
__device__ inline bool HasReciprocal(const Complex<float>& x) {
  const unsigned exponent =
      max(__float_as_uint(x.re) & 0x7fffffffU, __float_as_uint(x.im) & 0x7fffffffU) >> 23;
  return exponent - (127 - 54) < 108;
}
template <class Part>
__device__ Complex<Part> Reciprocal(const Complex<Part>& x) {
  const Part r = Reciprocal(x.re * x.re + x.im * x.im);
  return {x.re * r, -x.im * r};
}

template <class T>
__device__ __noinline__ T Divide(T a, T b) {
  return a / b;
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_RECIPROCAL_CUH_
