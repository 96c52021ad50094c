// SPDX-License-Identifier: Apache-2.0

// Products of small tiles by a warp on the tensor cores, in the accuracy of T.
#ifndef CROUT_KERNELS_CUDA_OPS_TILE_PRODUCT_CUH_
#define CROUT_KERNELS_CUDA_OPS_TILE_PRODUCT_CUH_

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/ops/dmma_tile.cuh"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

// A lane's elements of a 16 x 8 tile A, of an 8 x 8 tile B and of a 16 x 8 tile C = A B, with g =
// lane / 4 and t = lane % 4.
template <class T>
struct TileOfA {
  T values[2][2];  // [half][step]: row 8 half + g, column 4 step + t
};
template <class T>
struct TileOfB {
  T values[2];  // [step]: row 4 step + t, column g
};
template <class T>
struct TileOfC {
  T values[4];  // [2 half + side]: row 8 half + g, column 2 t + side
};

__device__ inline int TileGroup() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
__device__ inline int TileThread() { return static_cast<int>(threadIdx.x) % 4; }

// c += a b
__device__ inline void AddTileProduct(const TileOfA<double>& a, const TileOfB<double>& b,
                                      TileOfC<double>& c) {
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    MultiplyAdd(a.values[0][step], a.values[1][step], b.values[step], c.values);
  }
}

// A float as the sum of two TF32 numbers: its leading 11 bits, and the rounded remainder.
struct Tf32Pair {
  uint32_t high;
  uint32_t low;

  __device__ explicit Tf32Pair(float x) {
    constexpr uint32_t kKept = 0xffffe000U;
    high = __float_as_uint(x) & kKept;
    low = (__float_as_uint(x - __uint_as_float(high)) + 0x1000U) & kKept;
  }
};

__device__ inline void AddTf32Product(const uint32_t (&a)[2][2], const uint32_t (&b)[2],
                                      TileOfC<float>& c) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c.values[0]), "+f"(c.values[1]), "+f"(c.values[2]), "+f"(c.values[3])
      : "r"(a[0][0]), "r"(a[1][0]), "r"(a[0][1]), "r"(a[1][1]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    double sums[4] = {};
    MultiplyAdd(__uint_as_float(a[0][step]), __uint_as_float(a[1][step]), __uint_as_float(b[step]),
                sums);
#pragma unroll
    for (int e = 0; e < 4; ++e) c.values[e] += static_cast<float>(sums[e]);
  }
#endif
}

__device__ inline void AddTileProduct(const TileOfA<float>& a, const TileOfB<float>& b,
                                      TileOfC<float>& c) {
  uint32_t a_high[2][2];
  uint32_t a_low[2][2];
  uint32_t b_high[2];
  uint32_t b_low[2];
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    const Tf32Pair of_b(b.values[step]);
    b_high[step] = of_b.high;
    b_low[step] = of_b.low;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Tf32Pair of_a(a.values[half][step]);
      a_high[half][step] = of_a.high;
      a_low[half][step] = of_a.low;
    }
  }
  AddTf32Product(a_low, b_high, c);
  AddTf32Product(a_high, b_low, c);
  AddTf32Product(a_high, b_high, c);
}

// Four real products: with three (Gauss's method), the smaller part of a number may be lost.
template <class Part>
__device__ inline void AddTileProduct(const TileOfA<Complex<Part>>& a,
                                      const TileOfB<Complex<Part>>& b, TileOfC<Complex<Part>>& c) {
  TileOfA<Part> real;
  TileOfA<Part> imaginary;
  TileOfA<Part> minus_imaginary;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      real.values[half][step] = a.values[half][step].re;
      imaginary.values[half][step] = a.values[half][step].im;
      minus_imaginary.values[half][step] = -a.values[half][step].im;
    }
  }
  const TileOfB<Part> b_real = {b.values[0].re, b.values[1].re};
  const TileOfB<Part> b_imaginary = {b.values[0].im, b.values[1].im};
  TileOfC<Part> c_real;
  TileOfC<Part> c_imaginary;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    c_real.values[e] = c.values[e].re;
    c_imaginary.values[e] = c.values[e].im;
  }
  AddTileProduct(real, b_real, c_real);
  AddTileProduct(minus_imaginary, b_imaginary, c_real);
  AddTileProduct(real, b_imaginary, c_imaginary);
  AddTileProduct(imaginary, b_real, c_imaginary);
#pragma unroll
  for (int e = 0; e < 4; ++e) c.values[e] = {c_real.values[e], c_imaginary.values[e]};
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_TILE_PRODUCT_CUH_
