// Products of small tiles by a warp: on the tensor cores, in the accuracy of T.
#ifndef CROUT_KERNELS_CUDA_TILE_PRODUCT_CUH_
#define CROUT_KERNELS_CUDA_TILE_PRODUCT_CUH_

#include "kernels/cuda/reduction.cuh"

namespace crout {

// What a lane holds of a 16 x 8 tile A, of an 8 x 8 tile B and of a 16 x 8 tile C = A B, where
// g = lane / 4 and t = lane % 4.
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
  T values[2][2];  // [half][side]: row 8 half + g, column 2 t + side
};

__device__ inline int TileGroup() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
__device__ inline int TileThread() { return static_cast<int>(threadIdx.x) % 4; }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

// c += a b
__device__ inline void AddTileProduct(const TileOfA<double>& a, const TileOfB<double>& b,
                                      TileOfC<double>& c) {
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    asm volatile(
        "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+d"(c.values[0][0]), "+d"(c.values[0][1]), "+d"(c.values[1][0]), "+d"(c.values[1][1])
        : "d"(a.values[0][step]), "d"(a.values[1][step]), "d"(b.values[step]));
  }
}

// A number as two that TF32 holds: 11 bits and what is left.
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
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c.values[0][0]), "+f"(c.values[0][1]), "+f"(c.values[1][0]), "+f"(c.values[1][1])
      : "r"(a[0][0]), "r"(a[1][0]), "r"(a[0][1]), "r"(a[1][1]), "r"(b[0]), "r"(b[1]));
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

#else

template <class T>
__device__ inline void AddTileProduct(const TileOfA<T>& a, const TileOfB<T>& b, TileOfC<T>& c) {
#pragma unroll
  for (int k = 0; k < 8; ++k) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const T y = __shfl_sync(kAllLanes, b.values[k / 4], 4 * (2 * TileThread() + side) + k % 4);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const T x = __shfl_sync(kAllLanes, a.values[half][k / 4], 4 * TileGroup() + k % 4);
        c.values[half][side] += x * y;
      }
    }
  }
}

#endif

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_TILE_PRODUCT_CUH_
