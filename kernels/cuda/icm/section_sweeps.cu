// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/icm/icm_device.cuh"
#include "kernels/cuda/icm/section_sweeps.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

constexpr int kTile = kIcmTile;
constexpr int kTileLd = kTile + 4;
constexpr size_t kMaxSharedBytes = size_t{168} << 10;
constexpr size_t kStaticBytes = 4 * sizeof(int);
constexpr int kMinColumns = 8;
constexpr int64_t kMinStripColumns = 2048;  // enough for strips of 32 to fill half of the device
// Tiles per side of m, up to which all of them stay in shared memory.
constexpr int kResidentTiles = 4;

constexpr int TilesOfTriangle(int side) { return side * (side + 1) / 2; }

// kColumns columns of a section, in shared memory for all sweeps. A sweep proceeds from the last
// tile of rows up to the first. The elements that it reads lie above those that it has written, so
// every sweep reads only the previous one's results.
template <class T, int kColumns>
class Strip {
 public:
  static constexpr int kRows = kTile * kColumns / kBlockThreads;  // rows of a tile per thread

  // `resident`: all tiles of m stay in shared memory.
  __device__ Strip(const SectionSweeps<T>& work, const T* m, bool resident, T* shared)
      : work_(work),
        m_(m),
        first_(static_cast<int64_t>(blockIdx.x) * kColumns),
        tiles_(static_cast<int>((work.unknowns + kTile - 1) / kTile)),
        resident_(resident),
        column_(threadIdx.x % kColumns),
        row_(threadIdx.x / kColumns * kRows),
        x_(shared),
        b_(x_ + tiles_ * kTile * kColumns),
        inverse_(b_ + tiles_ * kTile * kColumns),
        m_tiles_(inverse_ + tiles_ * kTile) {}

  __device__ void Load();
  // Returns the lowest row whose bits changed. Sets `open` to the lowest row that has not
  // converged.
  __device__ int Sweep(int from, const IcmTolerances& tolerances, int& open);
  __device__ void Store() const;
  __device__ int64_t first() const { return first_; }
  __device__ unsigned long long Position(int p) const {
    const int64_t i = work_.row + (work_.transposed ? first_ : p);
    return PositionKey(i, work_.col + (work_.transposed ? p : first_));
  }

 private:
  __device__ bool Owns(int64_t p, int c) const {
    return p < work_.unknowns && first_ + c < work_.columns;
  }
  __device__ T Divisor(int64_t p) const {
    return work_.unit ? T{1} : m_[p * (work_.m_row + work_.m_col)];
  }
  // Multiplies by the inverse if that is finite: a division takes longer than the whole sum.
  __device__ T Divided(T sum, int p) const {
    const T inverse = inverse_[p];
    if (IsFinite(inverse)) return sum * inverse;
    const T d = Divisor(p);
    return d == T{0} ? T{0} : sum / d;
  }
  // Calls f(p, c) for the elements of the strip. Adjacent threads handle elements that are adjacent
  // in memory.
  template <class F>
  __device__ void ForEach(bool rows_adjoin, F f) const;
  __device__ T Initial(int64_t p, int c, T b) const;
  __device__ void LoadTile(int rows, int cols);
  __device__ T* Tile(int rows, int cols) const {
    return resident_ ? m_tiles_ + (TilesOfTriangle(rows) + cols) * kTile * kTileLd : m_tiles_;
  }

  const SectionSweeps<T>& work_;
  const T* const m_;
  const int64_t first_;
  const int tiles_;
  const bool resident_;
  const int column_;
  const int row_;
  T* const x_;  // [p][c]
  T* const b_;
  T* const inverse_;  // 1 / d_p; if not finite, divide by d_p instead
  T* const m_tiles_;  // [k][p] each; a single tile if not resident
};

template <class T, int kColumns>
template <class F>
__device__ void Strip<T, kColumns>::ForEach(bool rows_adjoin, F f) const {
  const int rows = tiles_ * kTile;
  for (int e = threadIdx.x; e < rows * kColumns; e += kBlockThreads) {
    if (rows_adjoin) {
      f(e % rows, e / rows);
    } else {
      f(e / kColumns, e % kColumns);
    }
  }
}

template <class T, int kColumns>
__device__ T Strip<T, kColumns>::Initial(int64_t p, int c, T b) const {
  if (work_.start.lu != nullptr) {
    return work_.transposed ? StartElement(work_.start, work_.row + first_ + c, work_.col + p)
                            : StartElement(work_.start, work_.row + p, work_.col + first_ + c);
  }
  if (!work_.scaled) return b;
  const T d = Divisor(p);
  return d == T{0} ? T{0} : b / d;
}

template <class T, int kColumns>
__device__ void Strip<T, kColumns>::Load() {
  const bool rows_adjoin = work_.b_row == 1 || work_.b_row == -1;
  ForEach(rows_adjoin, [&](int p, int c) {
    const bool owned = Owns(p, c);
    const T b = owned ? work_.b[p * work_.b_row + (first_ + c) * work_.b_col] : T{0};
    b_[p * kColumns + c] = b;
    x_[p * kColumns + c] = owned ? Initial(p, c, b) : T{0};
  });
  for (int p = threadIdx.x; p < work_.unknowns; p += kBlockThreads) {
    inverse_[p] = T{1} / Divisor(p);
  }
  for (int rows = 0; resident_ && rows < tiles_; ++rows) {
    for (int cols = 0; cols <= rows; ++cols) LoadTile(rows, cols);
  }
  __syncthreads();
}

template <class T, int kColumns>
__device__ void Strip<T, kColumns>::LoadTile(int rows, int cols) {
  const bool rows_adjoin = work_.m_row == 1 || work_.m_row == -1;
  T* const tile = Tile(rows, cols);
#pragma unroll
  for (int e = threadIdx.x; e < kTile * kTile; e += kBlockThreads) {
    const int p = rows_adjoin ? e % kTile : e / kTile;
    const int k = rows_adjoin ? e / kTile : e % kTile;
    const int64_t i = rows * kTile + p;
    const int64_t j = cols * kTile + k;
    const bool inside = i < work_.unknowns && j < i;
    tile[k * kTileLd + p] = inside ? m_[i * work_.m_row + j * work_.m_col] : T{0};
  }
}

template <class T, int kColumns>
__device__ int Strip<T, kColumns>::Sweep(int from, const IcmTolerances& tolerances, int& open) {
  int changed = kNoIndex;
  for (int rows = tiles_ - 1; rows >= 0 && rows * kTile + kTile > from; --rows) {
    T sum[kRows];
    const int p0 = rows * kTile + row_;
    const bool idle = p0 + kRows <= from;
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r] = b_[(p0 + r) * kColumns + column_];
    for (int cols = 0; cols <= rows; ++cols) {
      if (!resident_) {
        __syncthreads();
        LoadTile(rows, cols);
        __syncthreads();
      }
      if (idle) continue;
      // In the last tile, only the part before the row: later x are not final yet.
      const int depth = cols < rows ? kTile : row_;
      const T* const tile = Tile(rows, cols) + row_;
      const T* const x = x_ + cols * kTile * kColumns + column_;
#pragma unroll 4
      for (int k = 0; k < depth; ++k) {
        const T xk = x[k * kColumns];
#pragma unroll
        for (int r = 0; r < kRows; ++r) sum[r] = MinusProduct(sum[r], tile[k * kTileLd + r], xk);
      }
      if (cols < rows) continue;
#pragma unroll
      for (int r = 1; r < kRows; ++r) {
#pragma unroll
        for (int k = 0; k < r; ++k) {
          sum[r] = MinusProduct(sum[r], tile[(row_ + k) * kTileLd + r], x[(row_ + k) * kColumns]);
        }
      }
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int p = p0 + r;
      if (idle || p < from || !Owns(p, column_)) continue;
      const T after = Divided(sum[r], p);
      T& x = x_[p * kColumns + column_];
      if (!SameBits(x, after)) changed = min(changed, p);
      if (!HasConverged(x, after, tolerances)) open = min(open, p);
      x = after;
    }
  }
  return changed;
}

template <class T, int kColumns>
__device__ void Strip<T, kColumns>::Store() const {
  const bool rows_adjoin = work_.x_row == 1 || work_.x_row == -1;
  ForEach(rows_adjoin, [&](int p, int c) {
    if (!Owns(p, c)) return;
    work_.x[p * work_.x_row + (first_ + c) * work_.x_col] = x_[p * kColumns + c];
  });
  if (work_.largest == nullptr) return;
  for (int64_t p = threadIdx.x; p < work_.unknowns; p += kBlockThreads) {
    double largest = 0;
    for (int c = 0; c < kColumns; ++c) {
      largest = MaxKeepingNan(largest, double{Abs1(x_[p * kColumns + c])});
    }
    atomicMax(&work_.largest[p], AbsBits(largest));
  }
}

// The minimum over the block; `slot` is shared by the block.
__device__ int BlockMin(int value, int* slot) {
  const int least = __reduce_min_sync(kAllLanes, value);
  if (threadIdx.x % kWarp == 0 && least != kNoIndex) atomicMin(slot, least);
  __syncthreads();
  return *slot;
}

template <class T, int kColumns>
__global__ void __launch_bounds__(kBlockThreads)
    SectionSweepsKernel(IcmRun run, const __grid_constant__ SectionSweeps<T> work, bool resident) {
  extern __shared__ __align__(16) double shared[];
  __shared__ int changed[2], open[2];
  IcmState* state = run.state;
  if (state != nullptr && (Halted(state) || (work.only_if_swept && !state->swept))) return;
  const bool second = work.second_m != nullptr && state->diagonal != 0;
  Strip<T, kColumns> strip(work, second ? work.second_m : work.m, resident,
                           reinterpret_cast<T*>(shared));
  if (threadIdx.x < 2) changed[threadIdx.x] = open[threadIdx.x] = kNoIndex;
  strip.Load();
  int from = 0;
  int64_t sweep = 0;
  IcmEnd end = IcmEnd::kDone;
  int last_open = kNoIndex;
  while (true) {
    ++sweep;
    int* const changed_now = &changed[sweep % 2];
    int* const open_now = &open[sweep % 2];
    int mine = kNoIndex;
    const int lowest = strip.Sweep(from, run.tolerances, mine);
    const int lowest_changed = BlockMin(lowest, changed_now);
    last_open = BlockMin(mine, open_now);
    // Resets the slots of the next sweep; the barrier below separates this from their use.
    if (threadIdx.x == 0) changed[(sweep + 1) % 2] = open[(sweep + 1) % 2] = kNoIndex;
    __syncthreads();
    if (last_open == kNoIndex) break;
    // With a tolerance, rows before the lowest change may still move; without one, they are final.
    from = run.tolerances.exact() && lowest_changed != kNoIndex ? lowest_changed : 0;
    // A sweep that changes nothing is the last one: elements that are not finite will stay so.
    if (lowest_changed == kNoIndex || sweep > work.unknowns) end = IcmEnd::kNotFinite;
    if (run.sweep_limit > 0 && sweep >= run.sweep_limit && end == IcmEnd::kDone) {
      end = IcmEnd::kSweepLimit;
    }
    if (end != IcmEnd::kDone) break;
  }
  strip.Store();
  if (threadIdx.x != 0 || state == nullptr) return;
  if (work.sweeps != nullptr) {
    atomicMax(&work.sweeps[strip.first() / run.section_size * work.sweeps_step],
              static_cast<int32_t>(sweep));
  }
  if (end != IcmEnd::kDone && !work.only_if_swept) End(state, end, strip.Position(last_open));
  if (end != IcmEnd::kDone && work.only_if_swept) {
    // The speculative sweep failed. End the run unless a search by columns follows.
    if (run.criterion.rule == PivotRule::kNone || end == IcmEnd::kSweepLimit) {
      End(state, end, strip.Position(last_open));
    }
  }
}

// Dynamic shared memory of a strip in bytes.
size_t StripBytes(size_t element, int64_t unknowns, int columns, bool resident) {
  const int64_t tiles = (unknowns + kTile - 1) / kTile;
  const int64_t m_tiles = resident ? TilesOfTriangle(static_cast<int>(tiles)) : 1;
  return (tiles * kTile * (2 * columns + 1) + m_tiles * kTile * kTileLd) * element;
}

template <class T, int kColumns>
cudaError_t Launch(const IcmRun& run, const SectionSweeps<T>& work, bool resident,
                   const DeviceLimits& limits, cudaStream_t stream) {
  // The same value for all sections of a run, because other threads may be launching the same
  // kernel.
  const cudaError_t error = cudaFuncSetAttribute(SectionSweepsKernel<T, kColumns>,
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 static_cast<int>(SectionSweepsBytes(limits)));
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>((work.columns + kColumns - 1) / kColumns);
  const size_t bytes = StripBytes(sizeof(T), work.unknowns, kColumns, resident);
  SectionSweepsKernel<T, kColumns><<<blocks, kBlockThreads, bytes, stream>>>(run, work, resident);
  return cudaGetLastError();
}

}  // namespace

size_t SectionSweepsBytes(const DeviceLimits& limits) {
  return std::min(limits.DynamicBytes(kStaticBytes), kMaxSharedBytes);
}

int64_t MaxSweptUnknowns(DType dtype, const DeviceLimits& limits) {
  const size_t element = std::max(sizeof(double), SizeOf(dtype));
  int64_t unknowns = kIcmMaxSection;
  while (unknowns > 0 &&
         StripBytes(element, unknowns, kMinColumns, false) > SectionSweepsBytes(limits)) {
    unknowns -= kTile;
  }
  return unknowns < 2 * kTile ? 0 : unknowns;
}

template <class T>
cudaError_t LaunchSectionSweeps(const IcmRun& run, const SectionSweeps<T>& work,
                                const DeviceLimits& limits, cudaStream_t stream) {
  if (work.unknowns == 0 || work.columns == 0) return cudaSuccess;
  const auto fits = [&](int columns, bool resident) {
    return StripBytes(sizeof(T), work.unknowns, columns, resident) <= SectionSweepsBytes(limits);
  };
  // Wide strips need the least work. But they fit in shared memory only for short sections, and
  // they leave most of the device idle if there are few columns.
  const bool short_section = work.unknowns <= kTile * kResidentTiles;
  const auto will_do = [&](int columns, int64_t max_unknowns, int64_t min_columns) {
    return work.unknowns <= max_unknowns && work.columns >= min_columns &&
           fits(columns, short_section);
  };
  if (will_do(32, 256, kMinStripColumns)) {
    return Launch<T, 32>(run, work, short_section, limits, stream);
  }
  if (will_do(16, 512, kMinStripColumns / 2)) {
    return Launch<T, 16>(run, work, short_section, limits, stream);
  }
  const bool resident = short_section && fits(kMinColumns, true);
  return Launch<T, kMinColumns>(run, work, resident, limits, stream);
}

template cudaError_t LaunchSectionSweeps(const IcmRun&, const SectionSweeps<float>&,
                                         const DeviceLimits&, cudaStream_t);
template cudaError_t LaunchSectionSweeps(const IcmRun&, const SectionSweeps<double>&,
                                         const DeviceLimits&, cudaStream_t);
template cudaError_t LaunchSectionSweeps(const IcmRun&, const SectionSweeps<Complex<float>>&,
                                         const DeviceLimits&, cudaStream_t);
template cudaError_t LaunchSectionSweeps(const IcmRun&, const SectionSweeps<Complex<double>>&,
                                         const DeviceLimits&, cudaStream_t);

}  // namespace crout::cuda
