// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/icm/icm_device.cuh"
#include "kernels/cuda/icm/icm_panel.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

constexpr int kWarps = kBlockThreads / kWarp;
// Columns between reads of the stop flag and reports of progress.
constexpr int kColumnsPerStopCheck = 32;
// Columns of each thread's first row that are cached in shared memory.
constexpr int kCachedColumns = 32;

// Returns the larger candidate; among equals the upper row. NaN is never preferred; it ends the run
// elsewhere.
__device__ IcmCandidate Better(IcmCandidate a, IcmCandidate b) {
  const double magnitude_a = fabs(a.value);
  const double magnitude_b = fabs(b.value);
  if (magnitude_b > magnitude_a || isnan(magnitude_a)) return b;
  return magnitude_b == magnitude_a && b.row < a.row ? b : a;
}

__device__ IcmCandidate WarpBest(IcmCandidate mine) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    mine = Better(mine, {__shfl_xor_sync(kAllLanes, mine.value, step),
                         __shfl_xor_sync(kAllLanes, mine.row, step), mine.turn});
  }
  return mine;
}

// IcmCandidate::value of an element.
template <class T>
__device__ double CandidateOf(T element) {
  if constexpr (kIsComplex<T>) {
    return Abs1(element);
  } else {
    return element;
  }
}

// Both access the candidate as one 128-bit word: a reader that sees the new `turn` sees the rest
// too.
__device__ void StoreWhole(IcmCandidate* to, const IcmCandidate& candidate) {
  const auto value = static_cast<unsigned long long>(__double_as_longlong(candidate.value));
  const auto rest = static_cast<unsigned long long>(static_cast<uint32_t>(candidate.turn)) << 32 |
                    static_cast<uint32_t>(candidate.row);
  asm volatile("{ .reg .b128 t; mov.b128 t, {%1, %2}; st.relaxed.gpu.global.b128 [%0], t; }" ::"l"(
                   __cvta_generic_to_global(to)),
               "l"(value), "l"(rest)
               : "memory");
}

__device__ IcmCandidate LoadWhole(const IcmCandidate* from) {
  unsigned long long value, rest;
  asm volatile("{ .reg .b128 t; ld.relaxed.gpu.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
               : "=l"(value), "=l"(rest)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return {__longlong_as_double(static_cast<long long>(value)), static_cast<int32_t>(rest),
          static_cast<int32_t>(rest >> 32)};
}

// The positions that rows would have if they were exchanged at once. Only the panel's top rows are
// ever displaced. Every block maintains the same tables.
struct Places {
  int32_t at[kIcmMaxSection];     // the row that belongs at top position t
  int32_t place[kIcmMaxSection];  // the position of top row t
};

template <class T>
struct PanelShared {
  Places places;
  T u[kIcmMaxSection];  // the column of U above the current diagonal element
  IcmCandidate warps[kWarps];
  int32_t pivot_row;
  T pivot;
};

template <class T>
class Panel {
 public:
  __device__ Panel(const IcmRun& run, const IcmPanel<T>& work, PanelShared<T>& shared, T* cache)
      : run_(run),
        work_(work),
        shared_(shared),
        cache_(work.width <= kCachedColumns ? cache + threadIdx.x : nullptr),
        warp_(threadIdx.x / kWarp),
        lane_(threadIdx.x % kWarp) {}

  __device__ void Initialize();
  // Computes column j of L in all rows without a pivot, and publishes the block's candidate.
  __device__ void FinishColumn(int j);
  // Waits until all blocks have finished the column, and chooses its pivot.
  __device__ void ChoosePivot(int j);
  // Computes row j of U. Every block computes the next element, because the next column needs it.
  __device__ void FinishRow(int j);
  __device__ void Report();

 private:
  __device__ void Place(int j, int64_t row);
  __device__ IcmCandidate BestOfAll(int j, T& own);
  __device__ T Subtracted(T sum, const T* l, int64_t stride, int j) const;
  __device__ T RowElement(int j, int c);
  __device__ T ElementOf(const IcmCandidate& candidate, int j) const {
    if constexpr (kIsComplex<T>) {
      return LoadFresh(&Element(candidate.row, j));
    } else {
      return static_cast<T>(candidate.value);
    }
  }
  __device__ IcmCandidate* candidates(int j) { return work_.candidates + j % 2 * gridDim.x; }
  __device__ T& Element(int64_t i, int j) const { return work_.a(i, work_.begin + j); }
  __device__ void CheckFinite(T value, int64_t i, int j) const {
    if (!IsFinite(value)) End(run_.state, IcmEnd::kNotFinite, PositionKey(i, work_.begin + j));
  }

  const IcmRun& run_;
  const IcmPanel<T>& work_;
  PanelShared<T>& shared_;
  T* const cache_;
  const int warp_;
  const int lane_;
  T next_ = 0;  // this thread's first row: element of the next column, before any subtraction
  uint32_t used_ = 0;  // bit r: this thread's r-th row is a pivot row
  int interchanges_ = 0;
};

template <class T>
__device__ void Panel<T>::Initialize() {
  for (int t = threadIdx.x; t < work_.width; t += kBlockThreads) {
    shared_.places.at[t] = shared_.places.place[t] = static_cast<int32_t>(work_.begin + t);
  }
  const int64_t i = work_.begin + static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (i < work_.a.rows) next_ = Element(i, 0);
}

template <class T>
__device__ T Panel<T>::Subtracted(T sum, const T* l, int64_t stride, int j) const {
#pragma unroll 8
  for (int k = 0; k < j; ++k) sum = MinusProduct(sum, l[k * stride], shared_.u[k]);
  return sum;
}

template <class T>
__device__ void Panel<T>::FinishColumn(int j) {
  const auto rows = static_cast<int32_t>(work_.a.rows);
  const int32_t turn = static_cast<int32_t>(work_.begin) + j + 1;
  IcmCandidate best = {0, rows, turn};
  int64_t i = work_.begin + static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kBlockThreads;
  for (int r = 0; i < rows; i += stride, ++r) {
    if ((used_ >> r & 1) != 0) continue;
    T value;
    if (r == 0 && cache_ != nullptr) {
      value = Subtracted(next_, cache_, kBlockThreads, j);
      cache_[j * kBlockThreads] = value;
    } else {
      value = Subtracted(r == 0 ? next_ : Element(i, j), &Element(i, 0), work_.a.ld, j);
    }
    Element(i, j) = value;
    if (r == 0 && j + 1 < work_.width) next_ = Element(i, j + 1);
    CheckFinite(value, i, j);
    best = Better(best, {CandidateOf(value), static_cast<int32_t>(i), turn});
  }
  best = WarpBest(best);
  if (lane_ == 0) shared_.warps[warp_] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kWarps; ++w) best = Better(best, shared_.warps[w]);
  __threadfence();
  StoreWhole(&candidates(j)[blockIdx.x], best);
}

template <class T>
__device__ void Panel<T>::Place(int j, int64_t row) {
  Places& places = shared_.places;
  const int64_t begin = work_.begin;
  const int32_t aside = places.at[j];
  const int64_t top = row - begin;
  const int64_t from = top < work_.width ? places.place[top] : row;
  if (blockIdx.x == 0) work_.ipiv[begin + j] = from + 1;
  interchanges_ += from != begin + j;
  places.place[aside - begin] = static_cast<int32_t>(from);
  if (from - begin < work_.width) places.at[from - begin] = aside;
  if (top < work_.width) places.place[top] = static_cast<int32_t>(begin + j);
  places.at[j] = static_cast<int32_t>(row);
}

// Called by one warp. Sets `own` to the element of the row that is at the pivot's position.
template <class T>
__device__ IcmCandidate Panel<T>::BestOfAll(int j, T& own) {
  const int32_t turn = static_cast<int32_t>(work_.begin) + j + 1;
  IcmCandidate best = {0, static_cast<int32_t>(work_.a.rows), turn};
  for (unsigned b = lane_; b < gridDim.x; b += kWarp) {
    IcmCandidate other;
    do {
      other = LoadWhole(&candidates(j)[b]);
    } while (other.turn != turn);
    best = Better(best, other);
  }
  __threadfence();
  __syncwarp();
  own = LoadFresh(&Element(shared_.places.at[j], j));
  return WarpBest(best);
}

template <class T>
__device__ void Panel<T>::ChoosePivot(int j) {
  if (warp_ == 0) {
    T own;
    const IcmCandidate best = BestOfAll(j, own);
    if (lane_ == 0) {
      const bool moves =
          best.value != 0 && IsPivotRejected(run_.criterion, double{Abs1(own)}, fabs(best.value));
      shared_.pivot = moves ? ElementOf(best, j) : own;
      shared_.pivot_row = moves ? best.row : shared_.places.at[j];
      Place(j, shared_.pivot_row);
      if (blockIdx.x == 0 && shared_.pivot == T{0}) {
        atomicMin(&run_.state->info, static_cast<int32_t>(work_.begin + j + 1));
      }
    }
  }
  __syncthreads();
  const int64_t mine = shared_.pivot_row - work_.begin - threadIdx.x;
  const int64_t block = mine / kBlockThreads;
  if (mine >= 0 && mine % kBlockThreads == 0 && block % gridDim.x == blockIdx.x) {
    used_ |= 1U << (block / gridDim.x);
  }
}

// Called by one warp. Every lane returns u_jc.
template <class T>
__device__ T Panel<T>::RowElement(int j, int c) {
  const int64_t row = shared_.pivot_row;
  const T* u = work_.u + c * run_.section_size;
  const T before = LoadFresh(&Element(row, c));
  T sum = 0;
  for (int k = lane_; k < j; k += kWarp) sum += LoadFresh(&Element(row, k)) * LoadFresh(&u[k]);
  for (int step = kWarp / 2; step > 0; step /= 2) sum += ShuffleXor(sum, step);
  const T d = shared_.pivot;
  return d == T{0} ? T{0} : (before - sum) / d;
}

template <class T>
__device__ void Panel<T>::FinishRow(int j) {
  const int width = static_cast<int>(work_.width);
  const int next = j + 1;
  const auto store = [&](int c, T value) {
    if (lane_ != 0) return;
    work_.u[j + c * run_.section_size] = value;
    CheckFinite(value, work_.begin + j, c);
  };
  if (next >= width) return;
  if (warp_ == 0) {
    const T value = RowElement(j, next);
    if (lane_ == 0) shared_.u[j] = value;
    if (blockIdx.x == 0) store(next, value);
  } else {
    for (int c = next + 1 + blockIdx.x * (kWarps - 1) + warp_ - 1; c < width;
         c += gridDim.x * (kWarps - 1)) {
      store(c, RowElement(j, c));
    }
    const T* above = work_.u + next * run_.section_size;
    for (int k = threadIdx.x - kWarp; k < j; k += kBlockThreads - kWarp) {
      shared_.u[k] = LoadFresh(&above[k]);
    }
  }
  __syncthreads();
}

// Called by thread 0 of the first block, whose tables are complete.
template <class T>
__device__ void Panel<T>::Report() {
  const int64_t begin = work_.begin;
  const int64_t end = begin + work_.width;
  int moves = 0;
  for (int t = 0; t < work_.width; ++t) {
    const Places& places = shared_.places;
    const auto to = static_cast<int32_t>(begin + t);
    if (places.at[t] != to) work_.moves[moves++] = {to, places.at[t]};
    if (places.place[t] >= end) work_.moves[moves++] = {places.place[t], to};
  }
  run_.state->moves = moves;
  run_.state->interchanges += interchanges_;
  run_.pivots[work_.index] = interchanges_;
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    PanelKernel(IcmRun run, const __grid_constant__ IcmPanel<T> work) {
  extern __shared__ __align__(16) double cache[];
  __shared__ PanelShared<T> shared;
  IcmState* const state = run.state;
  if (Halted(state) || state->committed != 0) return;
  const bool first = blockIdx.x == 0 && threadIdx.x == 0;
  Panel<T> panel(run, work, shared, reinterpret_cast<T*>(cache));
  panel.Initialize();
  __syncthreads();
  for (int j = 0; j < work.width; ++j) {
    if (first && j % kColumnsPerStopCheck == 0) {
      *run.host.columns = work.begin + j;
      if (*run.host.stop != 0) state->stopped = 1;
    }
    panel.FinishColumn(j);
    panel.ChoosePivot(j);
    if (j % kColumnsPerStopCheck == 0 && *static_cast<volatile int32_t*>(&state->stopped) != 0)
      return;
    if (run.sweep_limit > 0 && 2 * j >= run.sweep_limit) {
      if (first) End(state, IcmEnd::kSweepLimit, PositionKey(work.begin + j, work.begin + j));
      return;
    }
    panel.FinishRow(j);
  }
  if (first) panel.Report();
}

// 256 threads move the rows of kExchangeColumns columns through shared memory.
constexpr int kExchangeColumns = 4;

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    ExchangeKernel(IcmRun run, const __grid_constant__ IcmPanel<T> work) {
  extern __shared__ __align__(16) double shared[];
  T* const carried = reinterpret_cast<T*>(shared);
  const IcmState* const state = run.state;
  if (Halted(state) || state->committed != 0) return;
  const int moves = state->moves;
  const int64_t c0 = static_cast<int64_t>(blockIdx.x) * kExchangeColumns;
  const int columns = static_cast<int>(min(int64_t{kExchangeColumns}, work.a.cols - c0));
  for (int e = threadIdx.x; e < moves * columns; e += kBlockThreads) {
    carried[e] = work.a(work.moves[e % moves].from, c0 + e / moves);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < moves * columns; e += kBlockThreads) {
    work.a(work.moves[e % moves].to, c0 + e / moves) = carried[e];
  }
  __syncthreads();
  for (int c = 0; c < columns; ++c) {
    const int64_t j = c0 + c - work.begin;
    if (j < 0 || j >= work.width) continue;
    for (int64_t i = threadIdx.x; i < j; i += kBlockThreads) {
      work.a(work.begin + i, c0 + c) = work.u[i + j * run.section_size];
    }
  }
  if (blockIdx.x != 0 || work.origin == nullptr) return;
  auto* const rows = reinterpret_cast<int32_t*>(shared);
  for (int m = threadIdx.x; m < moves; m += kBlockThreads) {
    rows[m] = work.origin[work.moves[m].from];
  }
  __syncthreads();
  for (int m = threadIdx.x; m < moves; m += kBlockThreads) {
    work.origin[work.moves[m].to] = rows[m];
  }
}

}  // namespace

template <class T>
size_t IcmPanelBytes() {
  return kCachedColumns * kBlockThreads * sizeof(T);
}

template <class T>
size_t IcmExchangeBytes(int64_t columns) {
  return 2 * columns * kExchangeColumns * sizeof(T);
}

template <class T>
static int64_t MaxColumns(const DeviceLimits& limits) {
  if (IcmPanelBytes<T>() > limits.DynamicBytes(sizeof(PanelShared<T>))) return 0;
  const size_t tiles = limits.DynamicBytes(0) / IcmExchangeBytes<T>(kIcmTile);
  return std::min(static_cast<int64_t>(tiles) * kIcmTile, kIcmMaxSection);
}

int64_t MaxSearchedColumns(DType dtype, const DeviceLimits& limits) {
  if (SizeOf(dtype) <= sizeof(double)) return MaxColumns<double>(limits);
  return MaxColumns<Complex<double>>(limits);
}

template <class T>
cudaError_t LaunchIcmPanel(const IcmRun& run, const IcmPanel<T>& work, const DeviceLimits& limits,
                           cudaStream_t stream) {
  const int64_t rows = work.a.rows - work.begin;
  const dim3 blocks(static_cast<unsigned>(
      std::min<int64_t>((rows + kBlockThreads - 1) / kBlockThreads, limits.multiprocessors)));
  const auto* kernel = reinterpret_cast<const void*>(PanelKernel<T>);
  const cudaError_t error = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(IcmPanelBytes<T>()));
  if (error != cudaSuccess) return error;
  IcmRun run_argument = run;
  IcmPanel<T> work_argument = work;
  void* arguments[] = {&run_argument, &work_argument};
  // A cooperative launch, because the blocks wait for each other.
  return cudaLaunchCooperativeKernel(kernel, blocks, dim3(kBlockThreads), arguments,
                                     IcmPanelBytes<T>(), stream);
}

template <class T>
cudaError_t LaunchIcmExchange(const IcmRun& run, const IcmPanel<T>& work,
                              const DeviceLimits& limits, cudaStream_t stream) {
  const auto blocks =
      static_cast<unsigned>((work.a.cols + kExchangeColumns - 1) / kExchangeColumns);
  const size_t bytes = IcmExchangeBytes<T>(work.width);
  const cudaError_t error = cudaFuncSetAttribute(
      ExchangeKernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
      static_cast<int>(IcmExchangeBytes<T>(MaxSearchedColumns(kDTypeOf<T>, limits))));
  if (error != cudaSuccess) return error;
  ExchangeKernel<<<blocks, kBlockThreads, bytes, stream>>>(run, work);
  return cudaGetLastError();
}

template size_t IcmPanelBytes<float>();
template size_t IcmPanelBytes<double>();
template size_t IcmPanelBytes<Complex<float>>();
template size_t IcmPanelBytes<Complex<double>>();
template size_t IcmExchangeBytes<float>(int64_t);
template size_t IcmExchangeBytes<double>(int64_t);
template size_t IcmExchangeBytes<Complex<float>>(int64_t);
template size_t IcmExchangeBytes<Complex<double>>(int64_t);
template cudaError_t LaunchIcmPanel(const IcmRun&, const IcmPanel<float>&, const DeviceLimits&,
                                    cudaStream_t);
template cudaError_t LaunchIcmPanel(const IcmRun&, const IcmPanel<double>&, const DeviceLimits&,
                                    cudaStream_t);
template cudaError_t LaunchIcmPanel(const IcmRun&, const IcmPanel<Complex<float>>&,
                                    const DeviceLimits&, cudaStream_t);
template cudaError_t LaunchIcmPanel(const IcmRun&, const IcmPanel<Complex<double>>&,
                                    const DeviceLimits&, cudaStream_t);
template cudaError_t LaunchIcmExchange(const IcmRun&, const IcmPanel<float>&, const DeviceLimits&,
                                       cudaStream_t);
template cudaError_t LaunchIcmExchange(const IcmRun&, const IcmPanel<double>&, const DeviceLimits&,
                                       cudaStream_t);
template cudaError_t LaunchIcmExchange(const IcmRun&, const IcmPanel<Complex<float>>&,
                                       const DeviceLimits&, cudaStream_t);
template cudaError_t LaunchIcmExchange(const IcmRun&, const IcmPanel<Complex<double>>&,
                                       const DeviceLimits&, cudaStream_t);

}  // namespace crout::cuda
