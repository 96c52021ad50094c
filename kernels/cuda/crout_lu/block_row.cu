// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/block_row.h"

#include <cuda/barrier>

#include "kernels/cuda/blocked/interchange_plan.cuh"
#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/tile_product.cuh"

namespace crout::cuda {
namespace {

constexpr int kTile = BlockRowPlan<double>::kTile;
constexpr int kMaxRows = BlockRowPlan<double>::kMaxRows;
// Largest magnitude accepted in the inverse of a tile. With partial pivoting the elements usually
// stay below about 3. If they are at most 1, multiplying by the inverse has the same error bound as
// substitution.
constexpr double kMaxInverseElement = 16;

// A lane holds its elements of a 32 x 32 left operand as kHalves x kSteps tiles of 16 x 8.
constexpr int kHalves = kTile / 16;
constexpr int kSteps = kTile / 8;

// Index of element (row, column) of an inverse. Elements that the lanes of a warp load together are
// adjacent.
__device__ constexpr int InverseIndex(int row, int column) {
  const int tile = row / 16 * kSteps + column / 8;
  const int element = row % 16 / 8 * 2 + column % 8 / 4;
  return (tile * 4 + element) * kWarp + row % 8 * 4 + column % 4;
}

// Inverts a unit lower triangle. Each lane computes one row y of the inverse by solving y L = e
// from the last element to the first. `l` stores the rows of L one after the other.
template <class T>
__device__ void InvertTile(const T (&l)[kTile][kTile], TileInverse<T>* inverse) {
  const int lane = threadIdx.x % kWarp;
  T y[kTile];
#pragma unroll
  for (int j = 0; j < kTile; ++j) y[j] = j == lane ? T{1} : T{0};
#pragma unroll
  for (int k = kTile - 1; k > 0; --k) {
#pragma unroll
    for (int j = 0; j < k; ++j) y[j] = MinusProduct(y[j], y[k], l[k][j]);
  }
  bool large = false;
#pragma unroll
  for (int j = 0; j < kTile; ++j) {
    inverse->elements[InverseIndex(lane, j)] = y[j];
    large = large || !(Abs1(y[j]) <= kMaxInverseElement);
  }
  const bool any_large = __any_sync(kAllLanes, large);
  if (lane == 0) inverse->substitute = any_large ? 1 : 0;
}

// The first block of threads computes the interchange plan; every other block inverts one tile.
template <class T>
__global__ void __launch_bounds__(kMaxRows)
    PlanBlockRowKernel(MatrixView<T> block, const int64_t* ipiv, int64_t above,
                       BlockRowPlan<T>* plan, const LuControl<T>* control) {
  __shared__ __align__(16) T rows[kTile][kTile];
  AwaitPreviousKernel();
  ReleaseDependentKernel();
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
  __syncthreads();
  if (threadIdx.x < kWarp) InvertTile(rows, &plan->tiles[tile]);
}

// Columns of b that one block of threads handles, and the block's shared memory. With row
// interchanges (kMoves), moving rows takes most of the time, and more columns would touch more
// memory pages. Without them, more columns per block read the triangle less often.
template <class T, bool kMoves>
struct BlockRowShape {
  static constexpr int kRows = kMoves ? kMaxRows : static_cast<int>(kSolvedRows);
  static constexpr int kColumns = kMoves ? 8 : 128 / static_cast<int>(sizeof(T));
  // Padding: lanes that read several rows at once access different banks.
  static constexpr int kPitch = kColumns + (kColumns == 32 ? 8 : 4);
  using Row = T[kPitch];

  struct Memory {
    // One barrier per tile of rows. A warp that waits on it uses no issue slots.
    ::cuda::barrier<::cuda::thread_scope_block> solved[kRows / kTile];
    alignas(16) T inverses[kRows / kTile][kTile * kTile];
    Row rows[kRows];
  };
};

// x := L^-1 x by substitution, for the tile of one warp.
template <class T, int kColumns, class Row>
__device__ __noinline__ void Substitute(const MatrixView<T>& tile, Row* rows) {
  const int lane = threadIdx.x % kWarp;
  const int order = min(kTile, static_cast<int>(tile.rows));
  for (int c = 0; c < kColumns; ++c) {
    T x = rows[lane][c];
    for (int k = 0; k < order; ++k) {
      const T l = lane > k && lane < order ? tile(lane, k) : T{0};
      x = MinusProduct(x, l, Shuffle(x, k));
    }
    rows[lane][c] = x;
  }
}

// The work of one warp: a tile of 32 rows of the block's columns of b.
template <class T, bool kMoves>
class BlockRowWarp {
 public:
  using Shape = BlockRowShape<T, kMoves>;
  using Memory = typename Shape::Memory;

  __device__ BlockRowWarp(const MatrixView<T>& block, const MatrixView<T>& b, Memory& shared)
      : block_(block),
        b_(b),
        shared_(shared),
        order_(static_cast<int>(block.cols)),
        lane_(static_cast<int>(threadIdx.x) % kWarp),
        warp_(static_cast<int>(threadIdx.x) / kWarp),
        own_(warp_ * kTile),
        first_(static_cast<int64_t>(blockIdx.x) * kColumns),
        columns_(static_cast<int>(min(static_cast<int64_t>(kColumns), b.cols - first_))) {}

  // Loads the inverse of the warp's tile into shared memory and initializes the tile's barrier.
  __device__ void Start(const TileInverse<T>& tile) {
#pragma unroll 8
    for (int e = lane_; e < kTile * kTile; e += kWarp) {
      shared_.inverses[warp_][e] = tile.elements[e];
    }
    if (lane_ == 0) init(&shared_.solved[warp_], kWarp);
  }

  // Loads the warp's rows of b and applies the interchanges of `moves`. Synchronizes the block of
  // threads.
  __device__ void Load(const InterchangePlan* moves) {
    FindRows(moves);
    // Out-of-range lanes load an element inside of b instead; branches would take longer.
    ForEach(c_, [&](T& x, const Row& row, int column) {
      x = b_(row.from, first_ + min(column, columns_ - 1));
    });
    if constexpr (kMoves) {
      Tiles others;
      ForEach(others, [&](T& x, const Row& row, int column) {
        x = b_(row.other_from, first_ + min(column, columns_ - 1));
      });
      __syncthreads();
      ForEach(others, [&](const T& x, const Row& row, int column) {
        if (row.other >= 0 && column < columns_) b_(row.other, first_ + column) = x;
      });
    } else {
      __syncthreads();  // the barriers are initialized
    }
    ForEach(c_, [&](T& x, const Row& row, int) {
      if (row.index >= order_) x = 0;
    });
  }

  // Subtracts the product with each tile above as soon as that tile is solved.
  __device__ void SubtractAbove() {
    Left a;
    for (int k = 0; k < own_; k += kTile) {
      LoadLeft(a, [&](int h, int half, int s, int step) {
        const int row = min(rows_[h][half].index, order_ - 1);
        return block_(row, k + 8 * s + 4 * step + TileThread());
      });
      shared_.solved[k / kTile].wait_parity(false);
      AddProduct(a, k);
    }
  }

  // c := L^-1 c for the diagonal tile. Then releases the warps below.
  __device__ void Solve(bool substitute) {
    Keep(false);
    if (substitute) {
      MatrixView<T> tile = block_;
      tile.data += own_ + own_ * block_.ld;
      tile.rows = order_ - own_;
      Substitute<T, kColumns>(tile, &shared_.rows[own_]);
      __syncwarp();
      ForEach(c_, [&](T& x, const Row& row, int column) { x = shared_.rows[row.index][column]; });
    } else {
      ForEach(c_, [](T& x, const Row&, int) { x = 0; });
      Left a;
      LoadLeft(a, [&](int h, int half, int s, int step) {
        return shared_.inverses[warp_][((h * kSteps + s) * 4 + half * 2 + step) * kWarp + lane_];
      });
      AddProduct(a, own_);
    }
    __syncwarp();
    Keep(true);  // store -x: the warps below add the product
    (void)shared_.solved[warp_].arrive();
  }

  __device__ void Store() {
    ForEach(c_, [&](const T& x, const Row& row, int column) {
      if (row.index < order_ && column < columns_) b_(row.index, first_ + column) = x;
    });
  }

 private:
  static constexpr int kColumns = Shape::kColumns;
  static constexpr int kSides = kColumns / 8;

  // A row of b of which this thread holds some elements.
  struct Row {
    int index;
    int from;
    int other;
    int other_from;
  };
  using Tiles = TileOfC<T>[kSides][kHalves];
  using Left = TileOfA<T>[kSteps][kHalves];

  __device__ void FindRows(const InterchangePlan* moves) {
#pragma unroll
    for (int h = 0; h < kHalves; ++h) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = own_ + 16 * h + 8 * half + TileGroup();
        if constexpr (kMoves) {
          rows_[h][half] = {i, i < order_ ? moves->row_from[i] : 0, moves->other[i],
                            moves->other_from[i]};
        } else {
          rows_[h][half] = {i, min(i, order_ - 1), -1, 0};
        }
      }
    }
  }

  // Calls f(value, row, column) for each element.
  template <class F>
  __device__ void ForEach(Tiles& elements, F f) {
#pragma unroll
    for (int n = 0; n < kSides; ++n) {
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int side = 0; side < 2; ++side) {
            f(elements[n][h].values[2 * half + side], rows_[h][half],
              8 * n + 2 * TileThread() + side);
          }
        }
      }
    }
  }

  // Loads the tiles of a left operand from element(h, half, s, step).
  template <class F>
  static __device__ void LoadLeft(Left& a, F element) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int step = 0; step < 2; ++step) {
            a[s][h].values[half][step] = element(h, half, s, step);
          }
        }
      }
    }
  }

  // c += a times rows [k, k + 32) in shared memory.
  __device__ void AddProduct(const Left& a, int k) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int n = 0; n < kSides; ++n) {
        TileOfB<T> x;
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          x.values[step] = shared_.rows[k + 8 * s + 4 * step + TileThread()][8 * n + TileGroup()];
        }
#pragma unroll
        for (int h = 0; h < kHalves; ++h) AddTileProduct(a[s][h], x, c_[n][h]);
      }
    }
  }

  // Stores c, or -c, in shared memory.
  __device__ void Keep(bool negative) {
    ForEach(c_, [&](const T& x, const Row& row, int column) {
      shared_.rows[row.index][column] = negative ? -x : x;
    });
    __syncwarp();
  }

  const MatrixView<T>& block_;
  const MatrixView<T>& b_;
  Memory& shared_;
  const int order_;
  const int lane_;
  const int warp_;
  const int own_;  // the warp's first row
  const int64_t first_;
  const int columns_;
  Row rows_[kHalves][2];
  Tiles c_;
};

// A block of threads handles some columns of b, and each of its warps a tile of 32 rows. A warp
// subtracts the product with each tile above as soon as that tile is solved, then solves its own
// tile.
//
// With interchanges, only one block runs on a multiprocessor. With two, each would have too few
// registers and spill.
template <class T, bool kMoves>
__global__ void __launch_bounds__(BlockRowShape<T, kMoves>::kRows, kMoves ? 1 : 0)
    BlockRowKernel(MatrixView<T> block, const InterchangePlan* moves, const TileInverse<T>* tiles,
                   MatrixView<T> b, const LuControl<T>* control) {
  using Warp = BlockRowWarp<T, kMoves>;
  extern __shared__ __align__(16) unsigned char memory[];
  AwaitPreviousKernel();
  ReleaseDependentKernel();
  if (BlockHalted(control)) return;
  const TileInverse<T>& tile = tiles[threadIdx.x / kWarp];
  Warp warp(block, b, *reinterpret_cast<typename Warp::Memory*>(memory));
  warp.Start(tile);
  warp.Load(moves);
  warp.SubtractAbove();
  warp.Solve(tile.substitute != 0);
  warp.Store();
}

unsigned Blocks(int64_t count, int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

template <class T, bool kMoves>
cudaError_t Launch(const MatrixView<T>& block, const InterchangePlan* moves,
                   const TileInverse<T>* tiles, const MatrixView<T>& b, const LuControl<T>* control,
                   bool overlap, cudaStream_t stream) {
  if (block.cols == 0 || b.cols == 0) return cudaSuccess;
  using Shape = BlockRowShape<T, kMoves>;
  constexpr int kBytes = sizeof(typename Shape::Memory);
  if (const cudaError_t error = cudaFuncSetAttribute(
          BlockRowKernel<T, kMoves>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
      error != cudaSuccess) {
    return error;
  }
  return LaunchDependent(BlockRowKernel<T, kMoves>, dim3(Blocks(b.cols, Shape::kColumns)),
                         Blocks(block.cols, kWarp) * kWarp, kBytes, overlap, stream, block, moves,
                         tiles, b, control);
}

}  // namespace

template <class T>
cudaError_t LaunchPlanBlockRow(const MatrixView<T>& block, const int64_t* ipiv, int64_t above,
                               BlockRowPlan<T>* plan, const LuControl<T>* control, bool overlap,
                               cudaStream_t stream) {
  if (block.cols == 0) return cudaSuccess;
  return LaunchDependent(PlanBlockRowKernel<T>, dim3(1 + Blocks(block.cols, kTile)), kMaxRows, 0,
                         overlap, stream, block, ipiv, above, plan, control);
}

template <class T>
size_t BlockRowBytes() {
  return sizeof(typename BlockRowShape<T, true>::Memory);
}

template <class T>
size_t SolveRowsBytes() {
  return sizeof(typename BlockRowShape<T, false>::Memory);
}

template <class T>
cudaError_t LaunchBlockRow(const MatrixView<T>& block, const BlockRowPlan<T>* plan,
                           const MatrixView<T>& b, const LuControl<T>* control, bool overlap,
                           cudaStream_t stream) {
  return Launch<T, true>(block, &plan->interchanges, plan->tiles, b, control, overlap, stream);
}

template <class T>
cudaError_t LaunchSolveRows(const MatrixView<T>& block, const TileInverse<T>* tiles,
                            const MatrixView<T>& b, const LuControl<T>* control, bool overlap,
                            cudaStream_t stream) {
  return Launch<T, false>(block, nullptr, tiles, b, control, overlap, stream);
}

#define CROUT_SOLVE_ROWS(T)                                                              \
  template cudaError_t LaunchPlanBlockRow(const MatrixView<T>&, const int64_t*, int64_t, \
                                          BlockRowPlan<T>*, const LuControl<T>*, bool,   \
                                          cudaStream_t);                                 \
  template size_t SolveRowsBytes<T>();                                                   \
  template cudaError_t LaunchSolveRows(const MatrixView<T>&, const TileInverse<T>*,      \
                                       const MatrixView<T>&, const LuControl<T>*, bool,  \
                                       cudaStream_t)
#define CROUT_BLOCK_ROW(T)                                                             \
  CROUT_SOLVE_ROWS(T);                                                                 \
  template size_t BlockRowBytes<T>();                                                  \
  template cudaError_t LaunchBlockRow(const MatrixView<T>&, const BlockRowPlan<T>*,    \
                                      const MatrixView<T>&, const LuControl<T>*, bool, \
                                      cudaStream_t)
CROUT_BLOCK_ROW(float);
CROUT_BLOCK_ROW(double);
CROUT_BLOCK_ROW(Complex<float>);
CROUT_SOLVE_ROWS(Complex<double>);
#undef CROUT_BLOCK_ROW
#undef CROUT_SOLVE_ROWS

}  // namespace crout::cuda
