// SPDX-License-Identifier: Apache-2.0

#include <cooperative_groups.h>

#include <algorithm>

#include "kernels/cuda/icm/icm_device.cuh"
#include "kernels/cuda/icm/icm_diagonal.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

namespace cg = cooperative_groups;

constexpr int kTile = kIcmTile;
constexpr int kRows = kTile * kTile / kBlockThreads;  // rows of a tile per thread
// Two for large tiles: all blocks run at once, and their shared memory must fit.
template <class T>
constexpr int kBlocksPerMultiprocessor = sizeof(T) > sizeof(double) ? 2 : 3;
constexpr int kSweepsPerStopCheck = 16;  // sweeps between reads of the host's stop flag
constexpr int32_t kStop = -1;  // stored as the lowest changed index: the host requested a stop

struct Tiles {
  int count = 0;  // per side

  __device__ int all() const { return count * count; }
  __device__ int Row(int tile) const { return tile % count; }
  __device__ int Column(int tile) const { return tile / count; }
};

// Results of one thread for its elements in one sweep.
struct Found {
  int changed = kNoIndex;
  int bad = kNoIndex;
  unsigned long long open = kNoPosition;
};

template <class T>
class DiagonalSweeps {
 public:
  __device__ DiagonalSweeps(const IcmRun& run, const IcmDiagonal<T>& work, T (*l)[kTile],
                            T (*u)[kTile + 1])
      : run_(run),
        work_(work),
        ld_(run.section_size),
        tiles_{static_cast<int>((work.width + kTile - 1) / kTile)},
        column_(threadIdx.x % kTile),
        row_(threadIdx.x / kTile * kRows),
        l_(l),
        u_(u) {}

  __device__ void Initialize();
  // Elements with min(i, j) < from keep their bits, because nothing that they depend on changed.
  __device__ void Sweep(const T* before, T* after, int from, int bad);
  __device__ void FindLargest(const T* result);

 private:
  __device__ bool Inside(int i, int j) const { return i < work_.width && j < work_.width; }
  __device__ void SweepTile(int rows, int cols, const T* before, T* after, int bad, Found& found);
  __device__ void LoadTiles(int rows, int cols, int depth, const T* before);
  __device__ void Note(int i, int j, T before, T after, Found& found) const;
  __device__ void Publish(const Found& found, int slot) const;

  const IcmRun& run_;
  const IcmDiagonal<T>& work_;
  const int64_t ld_;
  const Tiles tiles_;
  const int column_;
  const int row_;
  T (*const l_)[kTile];      // [k][i]
  T (*const u_)[kTile + 1];  // [k][j]

 public:
  int slot = 0;
};

template <class T>
__device__ void DiagonalSweeps<T>::Initialize() {
  for (int tile = blockIdx.x; tile < tiles_.all(); tile += gridDim.x) {
    // Here adjacent threads handle adjacent rows.
    const int i = tiles_.Row(tile) * kTile + column_;
    for (int r = 0; r < kRows; ++r) {
      const int j = tiles_.Column(tile) * kTile + row_ + r;
      if (!Inside(i, j)) continue;
      const T value = work_.start.lu != nullptr
                          ? StartElement(work_.start, work_.begin + i, work_.begin + j)
                          : work_.a(work_.begin + i, work_.begin + j);
      work_.buffers[0][i + j * ld_] = value;
      work_.buffers[1][i + j * ld_] = value;
    }
  }
}

template <class T>
__device__ void DiagonalSweeps<T>::LoadTiles(int rows, int cols, int depth, const T* before) {
  for (int r = 0; r < kRows; ++r) {
    const int other = row_ + r;
    const int i = rows * kTile + column_;
    const int k = depth * kTile + other;
    l_[other][column_] = Inside(i, k) ? LoadFresh(&before[i + k * ld_]) : T{0};
    const int ku = depth * kTile + column_;
    const int j = cols * kTile + other;
    u_[column_][other] = Inside(ku, j) ? LoadFresh(&before[ku + j * ld_]) : T{0};
  }
}

template <class T>
__device__ void DiagonalSweeps<T>::Note(int i, int j, T before, T after, Found& found) const {
  if (!SameBits(before, after)) found.changed = min(found.changed, min(i, j));
  if (!HasConverged(before, after, run_.tolerances)) {
    const unsigned long long key = PositionKey(work_.begin + i, work_.begin + j);
    found.open = min(found.open, key);
  }
}

template <class T>
__device__ void DiagonalSweeps<T>::SweepTile(int rows, int cols, const T* before, T* after, int bad,
                                             Found& found) {
  const int j = cols * kTile + column_;
  const int i0 = rows * kTile + row_;
  T sum[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    sum[r] = Inside(i0 + r, j) ? work_.a(work_.begin + i0 + r, work_.begin + j) : T{0};
  }
  const int last = min(rows, cols);
  for (int depth = 0; depth <= last; ++depth) {
    __syncthreads();
    LoadTiles(rows, cols, depth, before);
    __syncthreads();
    if (depth < last) {
#pragma unroll 8
      for (int k = 0; k < kTile; ++k) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          sum[r] = MinusProduct(sum[r], l_[k][row_ + r], u_[k][column_]);
        }
      }
      continue;
    }
    // Only the terms that the element depends on; later ones may not even be finite yet.
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int end = min(min(i0 + r, j) - depth * kTile, kTile);
      for (int k = 0; k < end; ++k) {
        sum[r] = MinusProduct(sum[r], l_[k][row_ + r], u_[k][column_]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int i = i0 + r;
    if (!Inside(i, j)) continue;
    const T old = LoadFresh(&before[i + j * ld_]);
    T value = sum[r];
    if (i < j) {
      const T d = LoadFresh(&before[i + i * ld_]);
      value = d == T{0} ? T{0} : value / d;
    }
    if (i >= bad && j > bad) value = old;
    after[i + j * ld_] = value;
    if (i < bad || j <= bad) Note(i, j, old, value, found);
    if (i == j && run_.criterion.rule == PivotRule::kInterval &&
        IsBad(run_.criterion, double{Abs1(value)}, 0)) {
      found.bad = min(found.bad, i);
    }
  }
}

template <class T>
__device__ void DiagonalSweeps<T>::Publish(const Found& found, int to) const {
  const int changed = __reduce_min_sync(kAllLanes, found.changed);
  const int bad = __reduce_min_sync(kAllLanes, found.bad);
  unsigned long long open = found.open;
  for (int step = kWarp / 2; step > 0; step /= 2) {
    open = min(open, __shfl_xor_sync(kAllLanes, open, step));
  }
  if (threadIdx.x % kWarp != 0) return;
  if (changed != kNoIndex) atomicMin(&run_.state->changed[to], changed);
  if (bad != kNoIndex) atomicMin(&run_.state->bad[to], bad);
  if (open != kNoPosition) atomicMin(&run_.state->open[to], open);
}

template <class T>
__device__ void DiagonalSweeps<T>::Sweep(const T* before, T* after, int from, int bad) {
  Found found;
  for (int tile = blockIdx.x; tile < tiles_.all(); tile += gridDim.x) {
    const int rows = tiles_.Row(tile);
    const int cols = tiles_.Column(tile);
    if ((min(rows, cols) + 1) * kTile <= from) continue;
    SweepTile(rows, cols, before, after, bad, found);
  }
  Publish(found, slot);
}

template <class T>
__device__ void DiagonalSweeps<T>::FindLargest(const T* result) {
  for (int tile = blockIdx.x; tile < tiles_.all(); tile += gridDim.x) {
    const int j = tiles_.Column(tile) * kTile + column_;
    double largest = 0;
    for (int r = 0; r < kRows; ++r) {
      const int i = tiles_.Row(tile) * kTile + row_ + r;
      if (Inside(i, j) && i >= j) {
        largest = MaxKeepingNan(largest, double{Abs1(LoadFresh(&result[i + j * ld_]))});
      }
    }
    if (largest != 0) atomicMax(&work_.largest[j], AbsBits(largest));
  }
}

__device__ void ResetSlot(IcmState* state, int slot) {
  state->changed[slot] = kNoIndex;
  state->bad[slot] = kNoIndex;
  state->open[slot] = kNoPosition;
}

// Called by one thread before the first sweep.
template <class T>
__device__ void BeginSweeps(const IcmRun& run, const IcmDiagonal<T>& work) {
  IcmState* const state = run.state;
  *run.host.columns = work.begin;
  for (int slot = 0; slot < 3; ++slot) ResetSlot(state, slot);
  for (int64_t j = 0; j < work.width; ++j) work.largest[j] = 0;
  state->swept = state->committed = state->moves = 0;
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads, kBlocksPerMultiprocessor<T>)
    DiagonalKernel(IcmRun run, const __grid_constant__ IcmDiagonal<T> work) {
  __shared__ T l[kTile][kTile];
  __shared__ T u[kTile][kTile + 1];
  IcmState* const state = run.state;
  if (Halted(state)) return;
  const cg::grid_group grid = cg::this_grid();
  const bool first = blockIdx.x == 0 && threadIdx.x == 0;
  DiagonalSweeps<T> sweeps(run, work, l, u);
  sweeps.Initialize();
  if (first) BeginSweeps(run, work);
  int from = 0;
  int bad = kNoIndex;
  int64_t sweep = 0;
  int64_t since = 0;  // the sweep in which `bad` last changed
  bool converged = false;
  IcmEnd end = IcmEnd::kDone;
  unsigned long long open = kNoPosition;
  grid.sync();
  while (true) {
    ++sweep;
    sweeps.slot = sweep % 3;
    sweeps.Sweep(work.buffers[(sweep + 1) % 2], work.buffers[sweep % 2], from, bad);
    if (first) {
      ResetSlot(state, (sweep + 1) % 3);
      if (sweep % kSweepsPerStopCheck == 0 && *run.host.stop != 0) {
        state->stopped = 1;
        atomicMin(&state->changed[sweeps.slot], kStop);
      }
    }
    grid.sync();
    const int changed = __ldcg(&state->changed[sweeps.slot]);
    if (changed == kStop) return;
    const int bad_now = __ldcg(&state->bad[sweeps.slot]);
    open = __ldcg(&state->open[sweeps.slot]);
    converged = open == kNoPosition && bad_now == bad;
    if (converged) break;
    from = run.tolerances.exact() && changed != kNoIndex ? min(changed, min(bad, bad_now)) : 0;
    if (bad_now != bad) since = sweep;
    bad = bad_now;
    // Nothing changed and `bad` is settled, so everything that the open elements depend on is
    // final.
    if (changed == kNoIndex && since < sweep) end = IcmEnd::kNotFinite;
    if (sweep - since > 2 * work.width + 1) end = IcmEnd::kNotFinite;
    if (end == IcmEnd::kDone && run.sweep_limit > 0 && sweep >= run.sweep_limit) {
      end = IcmEnd::kSweepLimit;
    }
    if (end != IcmEnd::kDone) break;
  }
  sweeps.FindLargest(work.buffers[sweep % 2]);
  if (!first) return;
  run.sweeps[work.index * (run.sections + 1)] = static_cast<int32_t>(sweep);
  state->diagonal = sweep % 2;
  state->swept = converged && bad == kNoIndex;
  const bool may_search = run.criterion.rule != PivotRule::kNone;
  if (end == IcmEnd::kSweepLimit || (end == IcmEnd::kNotFinite && !may_search)) {
    End(state, end, open);
  }
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    CommitKernel(IcmRun run, const __grid_constant__ IcmDiagonal<T> work, const T* below) {
  IcmState* const state = run.state;
  if (Halted(state) || !state->swept) return;
  const T* const result = work.buffers[state->diagonal];
  const int64_t ld = run.section_size;
  bool bad = false;
  for (int64_t j = threadIdx.x; j < work.width; j += kBlockThreads) {
    const double pivot = double{Abs1(result[j + j * ld])};
    bad |= IsPivotRejected(run.criterion, pivot, FromBits(work.largest[j]));
    if (blockIdx.x == 0 && pivot == 0) {
      atomicMin(&state->info, static_cast<int32_t>(work.begin + j + 1));
    }
  }
  if (__syncthreads_or(bad)) return;
  if (blockIdx.x == 0 && threadIdx.x == 0) state->committed = 1;
  const int64_t rows = work.a.rows - work.begin;
  const int64_t height = rows - work.width;
  for (int64_t e = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
       e < rows * work.width; e += static_cast<int64_t>(gridDim.x) * kBlockThreads) {
    const int64_t i = e % rows;
    const int64_t j = e / rows;
    work.a(work.begin + i, work.begin + j) =
        i < work.width ? result[i + j * ld] : below[i - work.width + j * height];
  }
}

}  // namespace

template <class T>
cudaError_t LaunchIcmDiagonal(const IcmRun& run, const IcmDiagonal<T>& work,
                              const DeviceLimits& limits, cudaStream_t stream) {
  const int64_t tiles = (work.width + kTile - 1) / kTile;
  const dim3 blocks(static_cast<unsigned>(std::min<int64_t>(
      tiles * tiles, int64_t{limits.multiprocessors} * kBlocksPerMultiprocessor<T>)));
  IcmRun run_argument = run;
  IcmDiagonal<T> work_argument = work;
  void* arguments[] = {&run_argument, &work_argument};
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(DiagonalKernel<T>), blocks,
                                     dim3(kBlockThreads), arguments, 0, stream);
}

template <class T>
cudaError_t LaunchIcmCommit(const IcmRun& run, const IcmDiagonal<T>& work, const T* below,
                            int multiprocessors, cudaStream_t stream) {
  const int64_t elements = (work.a.rows - work.begin) * work.width;
  const int64_t blocks = (elements + 4 * kBlockThreads - 1) / (4 * kBlockThreads);
  CommitKernel<<<static_cast<unsigned>(std::min<int64_t>(blocks, 4 * multiprocessors)),
                 kBlockThreads, 0, stream>>>(run, work, below);
  return cudaGetLastError();
}

template cudaError_t LaunchIcmDiagonal(const IcmRun&, const IcmDiagonal<float>&,
                                       const DeviceLimits&, cudaStream_t);
template cudaError_t LaunchIcmDiagonal(const IcmRun&, const IcmDiagonal<double>&,
                                       const DeviceLimits&, cudaStream_t);
template cudaError_t LaunchIcmDiagonal(const IcmRun&, const IcmDiagonal<Complex<float>>&,
                                       const DeviceLimits&, cudaStream_t);
template cudaError_t LaunchIcmDiagonal(const IcmRun&, const IcmDiagonal<Complex<double>>&,
                                       const DeviceLimits&, cudaStream_t);
template cudaError_t LaunchIcmCommit(const IcmRun&, const IcmDiagonal<float>&, const float*, int,
                                     cudaStream_t);
template cudaError_t LaunchIcmCommit(const IcmRun&, const IcmDiagonal<double>&, const double*, int,
                                     cudaStream_t);
template cudaError_t LaunchIcmCommit(const IcmRun&, const IcmDiagonal<Complex<float>>&,
                                     const Complex<float>*, int, cudaStream_t);
template cudaError_t LaunchIcmCommit(const IcmRun&, const IcmDiagonal<Complex<double>>&,
                                     const Complex<double>*, int, cudaStream_t);

}  // namespace crout::cuda
