#include "kernels/cuda/solve_tile.h"

#include <limits>

#include "kernels/cuda/reduction.cuh"

namespace crout {
namespace {

constexpr int kWarps = 8;
constexpr int kSystems = 4;  // of a warp

// Element (i, j) at data[i * row + j * col].
template <class T>
struct Strided {
  T* data;
  int64_t row;
  int64_t col;

  __device__ T& operator()(int64_t i, int64_t j) const { return data[i * row + j * col]; }
  __device__ Strided From(int64_t i, int64_t j) const { return {&(*this)(i, j), row, col}; }
};

// A lower triangle. columns[k][i] is its element (i, k) below the diagonal, else 0; beyond its
// order it is the identity.
template <class T, int kTile>
struct Triangle {
  T columns[kTile][kTile];
  T diagonal[kTile];
  T reciprocals[kTile];  // of the diagonal
};

// This thread's elements of a tile.
template <class T, int kTile>
struct TileElements {
  static constexpr int kThreads = kWarps * kWarp;

  T values[kTile * kTile / kThreads];

  // Calls f(value, row, column) for each.
  template <class F>
  __device__ void ForEach(F&& f) {
#pragma unroll
    for (int e = 0; e < kTile * kTile / kThreads; ++e) {
      const int index = e * kThreads + static_cast<int>(threadIdx.x);
      f(values[e], index % kTile, index / kTile);
    }
  }
  // The tile whose first element is at `from`, of its first `rows` rows; else 0.
  __device__ void Fetch(const Strided<const T>& from, int rows) {
    ForEach([&](T& value, int i, int k) { value = i < rows ? from(i, k) : T{0}; });
  }
  // The same, below the diagonal.
  __device__ void FetchBelow(const Strided<const T>& from, int rows) {
    ForEach([&](T& value, int i, int k) { value = i > k && i < rows ? from(i, k) : T{0}; });
  }
  __device__ void Keep(Triangle<T, kTile>& t) {
    ForEach([&](const T& value, int i, int k) { t.columns[k][i] = value; });
  }
};

// Returns whether the reciprocals will do: none left the normal range.
template <class T, int kTile>
__device__ bool Load(const Strided<const T>& from, int order, bool unit, Triangle<T, kTile>& t) {
  TileElements<T, kTile> elements;
  elements.FetchBelow(from, order);
  bool normal = true;
  if (threadIdx.x < kTile) {
    const int k = threadIdx.x;
    const T diagonal = unit || k >= order ? T{1} : from(k, k);
    t.diagonal[k] = diagonal;
    t.reciprocals[k] = T{1} / diagonal;
    const T size = fabs(t.reciprocals[k]);
    normal = size >= std::numeric_limits<T>::min() && size <= std::numeric_limits<T>::max();
  }
  elements.Keep(t);
  return __syncthreads_and(normal) != 0;
}

// Substitution forwards in a warp's systems; a lane holds every 32nd unknown of each. Division is
// most of a solve's time; it is needed where a diagonal element is zero or has no good reciprocal.
template <bool kDivide, class T, int kTile>
__device__ void Substitute(const Triangle<T, kTile>& t, T (&x)[kSystems][kTile / kWarp]) {
  constexpr int kParts = kTile / kWarp;
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll 1
    for (int step = 0; step < kWarp; ++step) {
      const int k = part * kWarp + step;
      T l[kParts];
#pragma unroll
      for (int p = part; p < kParts; ++p) l[p] = t.columns[k][p * kWarp + lane];
#pragma unroll
      for (int s = 0; s < kSystems; ++s) {
        T value = __shfl_sync(kAllLanes, x[s][part], step);
        if (!kDivide) {
          value *= t.reciprocals[k];
        } else {
          value = t.diagonal[k] == 0 ? T{0} : value / t.diagonal[k];
        }
        if (lane == step) x[s][part] = value;
#pragma unroll
        for (int p = part; p < kParts; ++p) x[s][p] -= l[p] * value;
      }
    }
  }
}

// The unknowns of a warp: a lane holds every 32nd of a tile's.
template <class T, int kTile>
struct Unknowns {
  T x[kSystems][kTile / kWarp];

  // Calls f(value, row, system) for each.
  template <class F>
  __device__ void ForEach(F&& f) {
#pragma unroll
    for (int s = 0; s < kSystems; ++s) {
#pragma unroll
      for (int p = 0; p < kTile / kWarp; ++p) {
        f(x[s][p], p * kWarp + static_cast<int>(threadIdx.x) % kWarp, s);
      }
    }
  }
  __device__ void Load(const Strided<T>& b, int rows, int64_t systems) {
    ForEach([&](T& value, int i, int s) { value = i < rows && s < systems ? b(i, s) : T{0}; });
  }
  __device__ void Store(const Strided<T>& b, int rows, int64_t systems) {
    ForEach([&](const T& value, int i, int s) {
      if (i < rows && s < systems) b(i, s) = value;
    });
  }
  __device__ void Solve(const Triangle<T, kTile>& t, bool normal) {
    if (normal) {
      Substitute<false>(t, x);
    } else {
      Substitute<true>(t, x);
    }
  }
};

__device__ inline int64_t FirstSystem() {
  return (static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp) * kSystems;
}

// Every kind of solve is a lower triangle's: an upper one is read backwards (both axes of the
// strides are reversed), one from the right transposed. A warp takes kSystems of them.
template <class T, int kTile>
__global__ void __launch_bounds__(kWarps* kWarp)
    SolveTileKernel(Strided<const T> triangle, bool unit, int order, Strided<T> b, int64_t systems,
                    const LuControl<T>* control) {
  __shared__ Triangle<T, kTile> t;
  if (control->halt != 0) return;
  const bool normal = Load(triangle, order, unit, t);
  const int64_t first = FirstSystem();
  Unknowns<T, kTile> unknowns;
  unknowns.Load(b.From(0, first), order, systems - first);
  unknowns.Solve(t, normal);
  unknowns.Store(b.From(0, first), order, systems - first);
}

// A triangle of several tiles.
template <class T>
struct ManyTiles {
  static constexpr int kTile = 64;
  struct alignas(16) Row {
    T systems[kSystems];
  };

  Triangle<T, kTile> tile;
  Row solved[kWarps][kMaxSolve];  // what each warp has solved
};

// As SolveTileKernel, a tile of rows after the other: minus the tiles to the left of the diagonal
// one, each in shared memory while the next is on its way, and then the solve with that.
template <class T>
__global__ void __launch_bounds__(kWarps* kWarp, 2)
    SolveTilesKernel(Strided<const T> triangle, bool unit, int order, Strided<T> b, int64_t systems,
                     const LuControl<T>* control) {
  constexpr int kTile = ManyTiles<T>::kTile;
  using Row = typename ManyTiles<T>::Row;
  extern __shared__ __align__(16) unsigned char memory[];
  if (control->halt != 0) return;
  auto& shared = *reinterpret_cast<ManyTiles<T>*>(memory);
  Row* const solved = shared.solved[threadIdx.x / kWarp];
  const int lane = threadIdx.x % kWarp;
  const int64_t first = FirstSystem();
  for (int begin = 0; begin < order; begin += kTile) {
    const int rows = order - begin;
    Unknowns<T, kTile> unknowns;
    unknowns.Load(b.From(begin, first), rows, systems - first);
    TileElements<T, kTile> elements;
    if (begin > 0) elements.Fetch(triangle.From(begin, 0), rows);
    for (int from = 0; from < begin; from += kTile) {
      __syncthreads();  // the tile before is done with
      elements.Keep(shared.tile);
      __syncthreads();
      if (from + kTile < begin) elements.Fetch(triangle.From(begin, from + kTile), rows);
#pragma unroll 4
      for (int k = 0; k < kTile; ++k) {
        const Row row = solved[from + k];
        const T* const column = shared.tile.columns[k];
#pragma unroll
        for (int p = 0; p < kTile / kWarp; ++p) {
          const T l = column[p * kWarp + lane];
#pragma unroll
          for (int s = 0; s < kSystems; ++s) unknowns.x[s][p] -= l * row.systems[s];
        }
      }
    }
    __syncthreads();
    const bool normal = Load(triangle.From(begin, begin), rows, unit, shared.tile);
    unknowns.Solve(shared.tile, normal);
    unknowns.Store(b.From(begin, first), rows, systems - first);
    unknowns.ForEach([&](const T& value, int i, int s) { solved[begin + i].systems[s] = value; });
    __syncwarp();
  }
}

}  // namespace

template <class T>
cudaError_t LaunchSolveTile(TileSolve solve, const MatrixView<T>& tile, const MatrixView<T>& b,
                            const LuControl<T>* control, cudaStream_t stream) {
  Strided<const T> triangle = {tile.data, 1, tile.ld};
  Strided<T> unknowns = {b.data, 1, b.ld};
  int64_t systems = b.cols;
  if (solve == TileSolve::kUnitUpper) {
    triangle = {&tile(tile.rows - 1, tile.rows - 1), -1, -tile.ld};
    unknowns = {b.data + tile.rows - 1, -1, b.ld};
  } else if (solve == TileSolve::kUpperFromRight) {
    triangle = {tile.data, tile.ld, 1};
    unknowns = {b.data, b.ld, 1};
    systems = b.rows;
  }
  if (systems == 0) return cudaSuccess;
  const bool unit = solve == TileSolve::kUnitLower || solve == TileSolve::kUnitUpper;
  constexpr int64_t kPerBlock = kWarps * kSystems;
  const auto blocks = static_cast<unsigned>((systems + kPerBlock - 1) / kPerBlock);
  auto kernel = SolveTileKernel<T, 32>;
  int shared_bytes = 0;
  if (tile.rows > 32) kernel = SolveTileKernel<T, 64>;
  if (tile.rows > 64) {
    kernel = SolveTilesKernel<T>;
    shared_bytes = sizeof(ManyTiles<T>);
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
  }
  kernel<<<blocks, kWarps * kWarp, shared_bytes, stream>>>(
      triangle, unit, static_cast<int>(tile.rows), unknowns, systems, control);
  return cudaGetLastError();
}

template cudaError_t LaunchSolveTile(TileSolve, const MatrixView<float>&, const MatrixView<float>&,
                                     const LuControl<float>*, cudaStream_t);
template cudaError_t LaunchSolveTile(TileSolve, const MatrixView<double>&,
                                     const MatrixView<double>&, const LuControl<double>*,
                                     cudaStream_t);

}  // namespace crout
