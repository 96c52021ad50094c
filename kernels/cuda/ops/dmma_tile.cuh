// SPDX-License-Identifier: Apache-2.0

// Tiles of matrix products on the double-precision tensor cores (or by shuffles on a GPU without
// them), for blocks whose warps share the summation index.
#ifndef CROUT_KERNELS_CUDA_OPS_DMMA_TILE_CUH_
#define CROUT_KERNELS_CUDA_OPS_DMMA_TILE_CUH_

#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {

// A warp's tile has 16 rows and 8 kTiles columns. This thread holds its elements sums[j][e], in row
// TileRow(e) and column 8 j + TileColumn(e).
inline constexpr int kTileRows = 16;
inline constexpr int kTileColumns = 8;
inline constexpr int kTileDepth = 4;  // columns of A per instruction

template <int kTiles>
using TileSums = double[kTiles][4];

__device__ inline int TileRow(int e) { return e / 2 * 8 + static_cast<int>(threadIdx.x) % 32 / 4; }
__device__ inline int TileColumn(int e) { return static_cast<int>(threadIdx.x) % 4 * 2 + e % 2; }

// The column of X, of 8, whose elements this thread supplies.
__device__ inline int FragmentColumn() { return static_cast<int>(threadIdx.x) % 32 / 4; }

// sums += A X for 16 x 4 by 4 x 8. With g = lane / 4 and t = lane % 4, `upper` and `lower` are the
// elements of A in rows g and 8 + g and column t, and `x` is that of X in row t and column g.
__device__ inline void MultiplyAdd(double upper, double lower, double x, double (&sums)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%0,%1,%2,%3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(upper), "d"(lower), "d"(x));
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const double a[2] = {upper, lower};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(sums[2 * half]), "+d"(sums[2 * half + 1])
                 : "d"(a[half]), "d"(x));
  }
#else
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < kTileDepth; ++k) {
    const double a[2] = {__shfl_sync(kAllLanes, upper, lane / 4 * 4 + k),
                         __shfl_sync(kAllLanes, lower, lane / 4 * 4 + k)};
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      sums[e] += a[e / 2] * __shfl_sync(kAllLanes, x, TileColumn(e) * 4 + k);
    }
  }
#endif
}

// sums += A[0:16, begin:end] X[begin:end, :] for this warp's share of the columns of A. The kWarps
// warps take batches of 32 columns in turn (16 if kTiles exceeds 1) and sum each batch from the
// first column to the last. Interleaving single columns would be less accurate for inverses of
// triangles.
//
// load_a(half, k) returns the element of A in row TileRow(2 * half) and column k. load_x(j, k)
// returns the element of X in row k and column 8 j + FragmentColumn(). Both return doubles, and 0
// for k >= end. `then` is called before X is read, once as many loads of A are in flight as
// registers allow: all of them if kTiles is at most 2 and a warp has at most 64 columns.
template <int kWarps, int kTiles, class LoadA, class LoadX, class Then>
__device__ void MultiplyTile(int warp, int begin, int end, LoadA load_a, LoadX load_x, Then then,
                             TileSums<kTiles>& sums) {
  constexpr int kBatch = kTiles == 1 ? 32 : 16;
  // A chunk is loaded at once; several chunks are in flight.
  constexpr int kSteps = 2;
  constexpr int kChunk = kSteps * kTileDepth;
  constexpr int kChunksOfA = kTiles <= 2 ? 8 : 4;
  constexpr int kChunksOfX = kTiles == 1 ? 4 : 2;
  double a[kChunksOfA][kSteps][2];
  double x[kChunksOfX][kSteps][kTiles];
  const auto first_of = [&](int chunk) {
    constexpr int kEach = kBatch / kChunk;
    return begin + (chunk / kEach * kWarps + warp) * kBatch + chunk % kEach * kChunk;
  };
  const int depth = static_cast<int>(threadIdx.x) % 4;
  const auto start_a = [&](int chunk, double(&to)[kSteps][2]) {
    const int first = first_of(chunk);
    if (first >= end) return;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const int k = first + s * kTileDepth + depth;
      to[s][0] = load_a(0, k);
      to[s][1] = load_a(1, k);
    }
  };
  const auto start_x = [&](int chunk, double(&to)[kSteps][kTiles]) {
    const int first = first_of(chunk);
    if (first >= end) return;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const int k = first + s * kTileDepth + depth;
#pragma unroll
      for (int j = 0; j < kTiles; ++j) to[s][j] = load_x(j, k);
    }
  };
#pragma unroll
  for (int c = 0; c < kChunksOfA; ++c) start_a(c, a[c]);
  then();
#pragma unroll
  for (int c = 0; c < kChunksOfX; ++c) start_x(c, x[c]);
  for (int base = 0; first_of(base) < end; base += kChunksOfA) {
#pragma unroll
    for (int c = 0; c < kChunksOfA; ++c) {
      if (first_of(base + c) >= end) break;
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
#pragma unroll
        for (int j = 0; j < kTiles; ++j) {
          MultiplyAdd(a[c][s][0], a[c][s][1], x[c % kChunksOfX][s][j], sums[j]);
        }
      }
      start_a(base + c + kChunksOfA, a[c]);
      start_x(base + c + kChunksOfX, x[c % kChunksOfX]);
    }
  }
}

// shared[c * 16 + i] := element (i, c) of the warp's sums; with `add`, the sum is added instead.
template <int kTiles>
__device__ void StoreTile(const TileSums<kTiles>& sums, bool add, double* shared) {
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      double& to = shared[(j * kTileColumns + TileColumn(e)) * kTileRows + TileRow(e)];
      to = add ? to + sums[j][e] : sums[j][e];
    }
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_DMMA_TILE_CUH_
