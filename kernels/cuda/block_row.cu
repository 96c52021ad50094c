#include "kernels/cuda/block_row.h"

#include <algorithm>
#include <cuda/barrier>

#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/cuda/interchange_plan.cuh"
#include "kernels/cuda/tile_product.cuh"

namespace crout {
namespace {

constexpr int kTile = BlockRowPlan<double>::kTile;
constexpr int kMaxRows = BlockRowPlan<double>::kMaxRows;
// Of an inverse's elements. They are at most 3 or so where pivoting finds what it hopes for; at 1
// substitution and product have the same error bounds.
constexpr double kMostOfInverse = 16;

// The part of a 32 x 32 tile that a lane holds of it as a left operand: 2 x 4 tiles of 16 x 8.
constexpr int kHalves = kTile / 16;
constexpr int kSteps = kTile / 8;

// Where element (row, column) of an inverse is: what the lanes of a warp load at once lies side by
// side.
__device__ constexpr int InverseIndex(int row, int column) {
  const int tile = row / 16 * kSteps + column / 8;
  const int element = row % 16 / 8 * 2 + column % 8 / 4;
  return (tile * 4 + element) * kWarp + row % 8 * 4 + column % 4;
}

// A row of the inverse in each lane: y with y L = e, from the last element to the first. `l` has
// the rows of L one after the other.
template <class T>
__device__ void InvertTile(const T (&l)[kTile][kTile], T* inverse, int* substitutes) {
  const int lane = threadIdx.x % kWarp;
  T y[kTile];
#pragma unroll
  for (int j = 0; j < kTile; ++j) y[j] = j == lane ? T{1} : T{0};
#pragma unroll
  for (int k = kTile - 1; k > 0; --k) {
#pragma unroll
    for (int j = 0; j < k; ++j) y[j] -= y[k] * l[k][j];
  }
  bool large = false;
#pragma unroll
  for (int j = 0; j < kTile; ++j) {
    inverse[InverseIndex(lane, j)] = y[j];
    large = large || !(fabs(y[j]) <= kMostOfInverse);
  }
  if (__any_sync(kAllLanes, large) && lane == 0) *substitutes = 1;
}

// The first block finds the interchanges, each other one inverts a tile.
template <class T>
__global__ void __launch_bounds__(kMaxRows)
    PlanBlockRowKernel(MatrixView<T> block, const int64_t* ipiv, int64_t above,
                       BlockRowPlan<T>* plan, const LuControl<T>* control) {
  __shared__ __align__(16) T rows[kTile][kTile];
  AwaitKernelBefore();
  ReleaseKernelBehind();
  if (control->halt != 0) return;
  if (blockIdx.x == 0) {
    const int count = ipiv != nullptr ? static_cast<int>(block.cols) : 0;
    FindInterchangePlan(ipiv, above, count, &plan->interchanges);
    return;
  }
  const int tile = static_cast<int>(blockIdx.x) - 1;
  const int first = tile * kTile;
  for (int e = threadIdx.x; e < kTile * kTile; e += kMaxRows) {
    const int i = e % kTile;
    const int k = e / kTile;
    rows[i][k] = i > k && first + i < block.cols ? block(first + i, first + k) : T{0};
  }
  if (threadIdx.x == 0) plan->substitutes[tile] = 0;
  __syncthreads();
  if (threadIdx.x < kWarp) InvertTile(rows, plan->inverses[tile], &plan->substitutes[tile]);
}

// The rows of a block of threads: a row's kColumns after the other, apart so that lanes that read
// several rows at once meet different banks.
template <class T, int kColumns>
struct BlockRows {
  static constexpr int kPitch = kColumns + 4;

  T values[kMaxRows * kPitch];

  __device__ T& operator()(int row, int column) { return values[row * kPitch + column]; }
};

using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Of a block of threads; whether each warp has its inverse at hand.
template <class T, int kColumnTiles>
struct BlockRowMemory {
  static constexpr bool kKeepsInverses = kColumnTiles == 1;

  Barrier solved[kMaxRows / kTile];  // of each tile's rows; a warp that waits takes no turns
  BlockRows<T, kColumnTiles * 8> rows;
  T inverses[kKeepsInverses ? kMaxRows / kTile : 1][kTile * kTile];
};

// x := L^-1 x for the tile of a warp.
template <class T, int kColumns>
__device__ __noinline__ void Substitute(const MatrixView<T>& tile, int begin,
                                        BlockRows<T, kColumns>& rows) {
  const int lane = threadIdx.x % kWarp;
  const int order = min(kTile, static_cast<int>(tile.rows));
  for (int c = 0; c < kColumns; ++c) {
    T x = rows(begin + lane, c);
    for (int k = 0; k < order; ++k) {
      const T l = lane > k && lane < order ? tile(lane, k) : T{0};
      x -= l * __shfl_sync(kAllLanes, x, k);
    }
    rows(begin + lane, c) = x;
  }
}

// A block of threads takes some columns of b, a warp a tile of 32 of their rows: minus the product
// with each tile above as soon as that is solved, and then its own solve.
template <class T, int kColumnTiles>
__global__ void __launch_bounds__(kMaxRows, 1)
    BlockRowKernel(MatrixView<T> block, const BlockRowPlan<T>* plan, MatrixView<T> b,
                   const LuControl<T>* control) {
  constexpr int kColumns = kColumnTiles * 8;
  // What registers hold of the left operand, and of rows that leave the block, beside c.
  constexpr int kStepsAhead = kColumnTiles == 1 ? kSteps : kSteps / 2;
  constexpr int kTilesMoved = kColumnTiles < 2 ? kColumnTiles : 2;
  using Memory = BlockRowMemory<T, kColumnTiles>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<Memory*>(memory);
  AwaitKernelBefore();
  ReleaseKernelBehind();
  if (control->halt != 0) return;
  const auto order = static_cast<int>(block.cols);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int own = warp * kTile;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kColumns;
  const auto columns = static_cast<int>(min(static_cast<int64_t>(kColumns), b.cols - first));
  const T* inverse = plan->inverses[warp];
  if constexpr (Memory::kKeepsInverses) {
#pragma unroll 8
    for (int e = lane; e < kTile * kTile; e += kWarp) shared.inverses[warp][e] = inverse[e];
    inverse = shared.inverses[warp];
  }
  if (lane == 0) init(&shared.solved[warp], 1);

  // What this thread holds of the warp's rows of b.
  struct Row {
    int index;
    int from;
    int other;
    int other_from;
  };
  Row rows[kHalves][2];
  TileOfC<T> c[kColumnTiles][kHalves];
  // Calls f(value, row, column) for the elements of the column tiles [begin, end), in tiles[0...].
  const auto for_each = [&](TileOfC<T>(*tiles)[kHalves], int begin, int end, auto f) {
#pragma unroll
    for (int n = begin; n < end; ++n) {
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int side = 0; side < 2; ++side) {
            f(tiles[n - begin][h].values[half][side], rows[h][half],
              8 * n + 2 * TileThread() + side);
          }
        }
      }
    }
  };
#pragma unroll
  for (int h = 0; h < kHalves; ++h) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const InterchangePlan& moves = plan->interchanges;
      const int i = own + 16 * h + 8 * half + TileGroup();
      rows[h][half] = {i, i < order ? moves.row_from[i] : 0, moves.other[i], moves.other_from[i]};
    }
  }
  // Where there is nothing to load, something else is: branches would take longer.
#pragma unroll
  for (int n = 0; n < kColumnTiles; n += kTilesMoved) {
    TileOfC<T> others[kTilesMoved][kHalves];
    for_each(c + n, n, n + kTilesMoved, [&](T& x, const Row& row, int column) {
      x = b(row.from, first + min(column, columns - 1));
    });
    for_each(others, n, n + kTilesMoved, [&](T& x, const Row& row, int column) {
      x = b(row.other_from, first + min(column, columns - 1));
    });
    __syncthreads();
    for_each(others, n, n + kTilesMoved, [&](const T& x, const Row& row, int column) {
      if (row.other >= 0 && column < columns) b(row.other, first + column) = x;
    });
  }
  for_each(c, 0, kColumnTiles, [&](T& x, const Row& row, int) {
    if (row.index >= order) x = 0;
  });

  // c += a times the rows k + 8 s and on.
  const auto add_product = [&](int k, int s, const TileOfA<T>(&a)[kHalves]) {
#pragma unroll
    for (int n = 0; n < kColumnTiles; ++n) {
      TileOfB<T> x;
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        x.values[step] = shared.rows(k + 8 * s + 4 * step + TileThread(), 8 * n + TileGroup());
      }
#pragma unroll
      for (int h = 0; h < kHalves; ++h) AddTileProduct(a[h], x, c[n][h]);
    }
  };
  for (int k = 0; k < own; k += kTile) {
#pragma unroll
    for (int s0 = 0; s0 < kSteps; s0 += kStepsAhead) {
      TileOfA<T> a[kStepsAhead][kHalves];
#pragma unroll
      for (int s = 0; s < kStepsAhead; ++s) {
#pragma unroll
        for (int h = 0; h < kHalves; ++h) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int row = min(own + 16 * h + 8 * half + TileGroup(), order - 1);
#pragma unroll
            for (int step = 0; step < 2; ++step) {
              a[s][h].values[half][step] = block(row, k + 8 * (s0 + s) + 4 * step + TileThread());
            }
          }
        }
      }
      if (s0 == 0) shared.solved[k / kTile].wait_parity(false);
#pragma unroll
      for (int s = 0; s < kStepsAhead; ++s) add_product(k, s0 + s, a[s]);
    }
  }

  const auto keep = [&](T sign) {
    for_each(c, 0, kColumnTiles, [&](const T& x, const Row& row, int column) {
      shared.rows(row.index, column) = sign * x;
    });
    __syncwarp();
  };
  keep(1);
  if (plan->substitutes[warp] == 0) {
    for_each(c, 0, kColumnTiles, [](T& x, const Row&, int) { x = 0; });
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      TileOfA<T> a[kHalves];
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int step = 0; step < 2; ++step) {
            const int element = half * 2 + step;
            a[h].values[half][step] = inverse[((h * kSteps + s) * 4 + element) * kWarp + lane];
          }
        }
      }
      add_product(own, s, a);
    }
  } else {
    MatrixView<T> tile = block;
    tile.data += own + own * block.ld;
    tile.rows = order - own;
    Substitute(tile, own, shared.rows);
    __syncwarp();
    for_each(c, 0, kColumnTiles,
             [&](T& x, const Row& row, int column) { x = shared.rows(row.index, column); });
  }
  __syncwarp();
  keep(-1);  // what the warps below subtract is added
  if (lane == 0) (void)shared.solved[warp].arrive();
  for_each(c, 0, kColumnTiles, [&](const T& x, const Row& row, int column) {
    if (row.index < order && column < columns) b(row.index, first + column) = x;
  });
}

unsigned Blocks(int64_t count, int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

template <class T, int kColumnTiles>
cudaError_t LaunchColumns(const MatrixView<T>& block, const BlockRowPlan<T>* plan,
                          const MatrixView<T>& b, const LuControl<T>* control, bool overlap,
                          cudaStream_t stream) {
  constexpr int kBytes = sizeof(BlockRowMemory<T, kColumnTiles>);
  const auto kernel = BlockRowKernel<T, kColumnTiles>;
  if (const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
      error != cudaSuccess) {
    return error;
  }
  const unsigned threads = Blocks(block.cols, kWarp) * kWarp;
  return LaunchBehind(kernel, dim3(Blocks(b.cols, kColumnTiles * 8)), threads, kBytes, overlap,
                      stream, block, plan, b, control);
}

}  // namespace

template <class T>
cudaError_t LaunchPlanBlockRow(const MatrixView<T>& block, const int64_t* ipiv, int64_t above,
                               BlockRowPlan<T>* plan, const LuControl<T>* control, bool overlap,
                               cudaStream_t stream) {
  if (block.cols == 0) return cudaSuccess;
  return LaunchBehind(PlanBlockRowKernel<T>, dim3(1 + Blocks(block.cols, kTile)), kMaxRows, 0,
                      overlap, stream, block, ipiv, above, plan, control);
}

template <class T>
cudaError_t LaunchBlockRow(const MatrixView<T>& block, const BlockRowPlan<T>* plan,
                           const MatrixView<T>& b, const LuControl<T>* control, bool overlap,
                           cudaStream_t stream) {
  // As few as an H100's multiprocessors take at once; beyond, each reads the block again.
  constexpr int64_t kFewColumns = 8 * 132;
  if (block.cols == 0 || b.cols == 0) return cudaSuccess;
  const auto launch = b.cols <= kFewColumns ? LaunchColumns<T, 1> : LaunchColumns<T, 4>;
  return launch(block, plan, b, control, overlap, stream);
}

template cudaError_t LaunchPlanBlockRow(const MatrixView<float>&, const int64_t*, int64_t,
                                        BlockRowPlan<float>*, const LuControl<float>*, bool,
                                        cudaStream_t);
template cudaError_t LaunchPlanBlockRow(const MatrixView<double>&, const int64_t*, int64_t,
                                        BlockRowPlan<double>*, const LuControl<double>*, bool,
                                        cudaStream_t);
template cudaError_t LaunchBlockRow(const MatrixView<float>&, const BlockRowPlan<float>*,
                                    const MatrixView<float>&, const LuControl<float>*, bool,
                                    cudaStream_t);
template cudaError_t LaunchBlockRow(const MatrixView<double>&, const BlockRowPlan<double>*,
                                    const MatrixView<double>&, const LuControl<double>*, bool,
                                    cudaStream_t);

}  // namespace crout
