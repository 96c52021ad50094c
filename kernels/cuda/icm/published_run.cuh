// SPDX-License-Identifier: Apache-2.0

// Device code of the sweeps of published_run.h.
#ifndef CROUT_KERNELS_CUDA_ICM_PUBLISHED_RUN_CUH_
#define CROUT_KERNELS_CUDA_ICM_PUBLISHED_RUN_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/device/block_sync.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/icm/icm_device.cuh"
#include "kernels/cuda/icm/published_run.h"
#include "kernels/cuda/ops/largest_candidate.cuh"

namespace crout::cuda {

// c + a b, rounded once; for complex numbers, part by part.
__device__ inline float Fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double Fused(double a, double b, double c) { return fma(a, b, c); }
template <class Part>
__device__ Complex<Part> Fused(const Complex<Part>& a, const Complex<Part>& b,
                               const Complex<Part>& c) {
  return {Fused(-a.im, b.im, Fused(a.re, b.re, c.re)), Fused(a.im, b.re, Fused(a.re, b.im, c.im))};
}

// Rows [row, row_end) of columns [column, column_end).
struct PublishedRegion {
  int64_t row, row_end, column, column_end;
};

// A matrix from which L, U or an iterate is read.
template <class T>
struct PublishedSource {
  const T* data;
  int64_t ld;

  __device__ T operator()(int64_t i, int64_t j) const { return LoadFresh(&data[i + j * ld]); }
};

template <class T, int kTile>
struct PublishedShared {
  struct Tiles {
    T l[kTile][kTile + 1];  // [k][i]
    T u[kTile][kTile + 1];  // [k][j]
  };
  union {
    Tiles tiles;
    Candidates<kTile * kTile> candidates;
  };
  int found;  // flags kChanged and kNan
  int first;
};

// One launch, executed by every thread of its grid. All threads make the same decisions, based on
// data written before the last grid barrier.
template <class T, int kTile>
class PublishedSection {
 public:
  __device__ PublishedSection(const IcmRun& run, const PublishedRun<T>& work, int64_t index)
      : run_(run),
        work_(work),
        n_(work.lu.rows),
        index_(index),
        begin_(index * run.section_size),
        end_(Least(begin_ + run.section_size, n_)),
        shared_(SharedByBlock<PublishedShared<T, kTile>>()),
        row_(threadIdx.x % kTile),
        column_(threadIdx.x / kTile),
        leads_(blockIdx.x == 0 && threadIdx.x == 0) {}

  __device__ void Run();

 private:
  // The sections that a sweep covers.
  enum class Part { kDiagonal, kBelow, kRight };
  static constexpr int kThreads = kTile * kTile;
  static constexpr int kChanged = 1;
  static constexpr int kNan = 2;

  __device__ static int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }
  __device__ static int64_t Tiles(int64_t length) { return (length + kTile - 1) / kTile; }

  // Clears the results of the previous launch's sweeps.
  __device__ void Forget() {
    for (int64_t s = threadIdx.x; s < run_.sections; s += kThreads) {
      work_.section_changed[s] = work_.section_nan[s] = 0;
    }
    if (leads_) work_.flags->changed = work_.flags->ended = 0;
  }
  // Returns false if the run has ended.
  __device__ bool Iterate();
  __device__ bool Sweep(Part part, int64_t start, int64_t& bad);
  __device__ void SweepOnce(Part part, int64_t bad, int32_t first);
  __device__ void SweepTiles(Part part, const PublishedRegion& region, int64_t section, int64_t bad,
                             int from);
  __device__ void Settle(Part part, int64_t bad, int32_t first);
  __device__ PublishedRegion RegionOf(Part part, int64_t section, int64_t bad) const;
  __device__ bool IsActive(int64_t section, int32_t first) const {
    return sweep_ == first || __ldcg(&work_.section_changed[section]) >= sweep_ - 1;
  }
  __device__ void Count(Part part, int32_t first);
  // A change that is NaN does not count, like in the published method.
  __device__ bool HasChanged(const T& before, const T& now) const {
    using Real = RealPart<T>;
    const auto relative = static_cast<Real>(run_.tolerances.relative);
    const auto absolute = static_cast<Real>(run_.tolerances.absolute);
    return Abs1(now - before) > (relative == 0 ? absolute : absolute + relative * Abs1(now));
  }
  __device__ bool Pivot(int64_t bad);
  __device__ void ConcludeNotFinite(const PublishedRegion& region, bool diagonal);
  __device__ void AddProducts();
  // Ends the run with LAPACK's info.
  __device__ void EndWith(int64_t info) {
    if (!leads_) return;
    run_.state->info = static_cast<int32_t>(info);
    work_.flags->over = 1;
  }

  // Returns sums(i, j) plus the products l(i, k) u(k, j) for all k of this section below i and j,
  // for the thread's element of the tile that begins at (row, column).
  __device__ T Sum(const PublishedSource<T>& l, const PublishedSource<T>& u, int64_t row,
                   int64_t column, const PublishedRegion& region);
  // Returns the first j in [from, end_) for which is(l_jj) holds, or end_ if there is none. `at`:
  // the iterate.
  template <class F>
  __device__ int64_t First(const PublishedSource<T>& at, int64_t from, F is);
  __device__ int64_t FirstBad(const PublishedSource<T>& at, int64_t from) {
    return First(at, from, [&](T x) { return IsBad(run_.criterion, double{Abs1(x)}, 0); });
  }

  // The iterate after an even (0) or odd (1) number of sweeps of a phase.
  __device__ T* Buffer(int which) const { return which == 0 ? work_.lu.data : work_.next; }
  __device__ int64_t Ld(int which) const { return which == 0 ? work_.lu.ld : n_; }
  __device__ PublishedSource<T> Source(int which) const { return {Buffer(which), Ld(which)}; }

  const IcmRun& run_;
  const PublishedRun<T>& work_;
  const int64_t n_;
  const int64_t index_;
  const int64_t begin_;
  const int64_t end_;
  PublishedShared<T, kTile>& shared_;
  const int row_;
  const int column_;
  const bool leads_;
  int32_t sweep_ = 0;
};

template <class T, int kTile>
__device__ void PublishedSection<T, kTile>::Run() {
  if (leads_) *run_.host.columns = begin_;
  if (blockIdx.x == 0) Forget();
  SyncGrid();
  if (!Iterate()) return;
  const int64_t zero = First(Source(0), begin_, [](T x) { return x == T{0}; });
  if (zero < end_) return EndWith(zero + 1);
  int64_t bad = end_;
  if (end_ == n_ || !Sweep(Part::kRight, begin_, bad)) return;
  AddProducts();
}

// Computes the diagonal section and the sections below it, in rounds.
template <class T, int kTile>
__device__ bool PublishedSection<T, kTile>::Iterate() {
  int64_t start = begin_;  // the search for bad elements starts here
  while (true) {
    int64_t bad = end_;
    if (!Sweep(Part::kDiagonal, start, bad)) return false;
    if (end_ < n_ && !Sweep(Part::kBelow, start, bad)) return false;
    if (bad == end_) return true;
    if (!Pivot(bad)) return false;
    if (bad + 1 == end_) return true;  // no element is left that the pivot could change
    if (IsBad(run_.criterion, double{Abs1(Source(0)(bad, bad))}, 0)) start = bad + 1;
  }
}

// Sweeps until nothing changes. For the diagonal section, `bad` is then its first bad element.
template <class T, int kTile>
__device__ bool PublishedSection<T, kTile>::Sweep(Part part, int64_t start, int64_t& bad) {
  const bool diagonal = part == Part::kDiagonal;
  const int32_t first = sweep_ + 1;
  if (diagonal) bad = FirstBad(Source(0), start);
  int64_t mask = bad;
  do {
    ++sweep_;
    mask = bad;
    SweepOnce(part, mask, first);
    SyncGrid();
    if (__ldcg(&work_.flags->ended) == sweep_) {
      if (leads_ && run_.state->end == static_cast<int32_t>(IcmEnd::kDone)) run_.state->stopped = 1;
      return false;
    }
    if (diagonal) bad = FirstBad(Source((sweep_ - first + 1) % 2), start);
    // Uses >=, because blocks that have continued may already have stored the number of the next
    // sweep.
  } while (__ldcg(&work_.flags->changed) >= sweep_);
  Settle(part, mask, first);
  const int64_t sections = diagonal ? index_ + 1 : run_.sections;
  bool finite = true;
  for (int64_t s = diagonal ? index_ : index_ + 1; s < sections; ++s) {
    // Non-finite elements count only if they were found in the section's last sweep.
    const int32_t changed = __ldcg(&work_.section_changed[s]);
    const int32_t last = changed < first ? first : changed + 1;
    if (__ldcg(&work_.section_nan[s]) != last) continue;
    if (finite) SyncGrid();  // wait for Settle()
    finite = false;
    if (blockIdx.x == 0) ConcludeNotFinite(RegionOf(part, s, mask), diagonal);
  }
  SyncGrid();
  return finite;
}

template <class T, int kTile>
__device__ PublishedRegion PublishedSection<T, kTile>::RegionOf(Part part, int64_t section,
                                                                int64_t bad) const {
  const int64_t other = section * run_.section_size;
  const int64_t other_end = Least(other + run_.section_size, n_);
  if (part == Part::kRight) return {begin_, end_, other, other_end};
  return {other, other_end, begin_, part == Part::kBelow ? Least(bad + 1, end_) : end_};
}

template <class T, int kTile>
__device__ void PublishedSection<T, kTile>::SweepOnce(Part part, int64_t bad, int32_t first) {
  const bool diagonal = part == Part::kDiagonal;
  if (leads_) Count(part, first);
  const int from = (sweep_ - first) % 2;
  const int64_t last = diagonal ? index_ + 1 : run_.sections;
  for (int64_t s = diagonal ? index_ : index_ + 1; s < last; ++s) {
    if (IsActive(s, first)) SweepTiles(part, RegionOf(part, s, bad), s, bad, from);
  }
}

// Called by one thread. Counts the sweeps of this round, and ends the run if one exceeds the limit
// or the host requested a stop.
template <class T, int kTile>
__device__ void PublishedSection<T, kTile>::Count(Part part, int32_t first) {
  const bool diagonal = part == Part::kDiagonal;
  const int64_t last = diagonal ? index_ + 1 : run_.sections;
  for (int64_t s = diagonal ? index_ : index_ + 1; s < last; ++s) {
    if (!IsActive(s, first)) continue;
    const int64_t i = part == Part::kRight ? index_ : s;
    const int64_t j = part == Part::kRight ? s : index_;
    int32_t& count = run_.sweeps[i + j * run_.sections];
    if (count >= run_.sweep_limit) {
      End(run_.state, IcmEnd::kSweepLimit,
          PositionKey(i * run_.section_size, j * run_.section_size));
      atomicMax(&work_.flags->ended, sweep_);
    } else {
      ++count;
    }
  }
  if (*run_.host.stop != 0) atomicMax(&work_.flags->ended, sweep_);
}

template <class T, int kTile>
__device__ T PublishedSection<T, kTile>::Sum(const PublishedSource<T>& l,
                                             const PublishedSource<T>& u, int64_t row,
                                             int64_t column, const PublishedRegion& region) {
  const int64_t i = row + row_;
  const int64_t j = column + column_;
  const bool inside = i < region.row_end && j < region.column_end;
  T sum = inside ? LoadFresh(&work_.sums[i + j * n_]) : T{0};
  // Beyond the section, i and j are both at least end_.
  const int64_t steps = Least(Least(i, j), end_);
  const int64_t deepest = Least(Least(row + kTile, region.row_end) - 1,
                                Least(Least(column + kTile, region.column_end) - 1, end_));
  auto& [left, top] = shared_.tiles;
  for (int64_t k0 = begin_; k0 < deepest; k0 += kTile) {
    __syncthreads();
    if (i < region.row_end && k0 + column_ < end_) left[column_][row_] = l(i, k0 + column_);
    if (j < region.column_end && k0 + row_ < end_) top[row_][column_] = u(k0 + row_, j);
    __syncthreads();
    const auto depth = static_cast<int>(Least(kTile, steps - k0));
    for (int k = 0; inside && k < depth; ++k) sum = Fused(left[k][row_], top[k][column_], sum);
  }
  return sum;
}

template <class T, int kTile>
__device__ void PublishedSection<T, kTile>::SweepTiles(Part part, const PublishedRegion& region,
                                                       int64_t section, int64_t bad, int from) {
  const PublishedSource<T> before = Source(from);
  const PublishedSource<T> final = Source(0);
  const PublishedSource<T> l = part == Part::kRight ? final : before;
  const PublishedSource<T> u = part == Part::kBelow ? final : before;
  const int64_t down = Tiles(region.row_end - region.row);
  const int64_t tiles = down * Tiles(region.column_end - region.column);
  if (threadIdx.x == 0) shared_.found = 0;
  __syncthreads();
  // Each section starts with a different block.
  const int64_t blocks = gridDim.x;
  for (int64_t tile = (blockIdx.x + blocks - section * tiles % blocks) % blocks; tile < tiles;
       tile += blocks) {
    const int64_t row = region.row + tile % down * kTile;
    const int64_t column = region.column + tile / down * kTile;
    const bool masked = row >= bad && column > bad;
    const T sum = masked ? T{0} : Sum(l, u, row, column, region);
    const int64_t i = row + row_;
    const int64_t j = column + column_;
    if (i >= region.row_end || j >= region.column_end) continue;
    const T old = before(i, j);
    T now = old;
    if (i < bad || j <= bad) {
      now = LoadFresh(&work_.a[i + j * n_]) - sum;
      if (i < j) now = now / l(i, i);
      const int found = (HasChanged(old, now) ? kChanged : 0) | (IsFinite(now) ? 0 : kNan);
      if (found != 0) atomicOr(&shared_.found, found);
    }
    Buffer(1 - from)[i + j * Ld(1 - from)] = now;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if ((shared_.found & kChanged) != 0) {
    atomicMax(&work_.section_changed[section], sweep_);
    atomicMax(&work_.flags->changed, sweep_);
  }
  if ((shared_.found & kNan) != 0) atomicMax(&work_.section_nan[section], sweep_);
}

// Copies sections whose last iterate is in `next` to `lu`.
template <class T, int kTile>
__device__ void PublishedSection<T, kTile>::Settle(Part part, int64_t bad, int32_t first) {
  const bool diagonal = part == Part::kDiagonal;
  const int64_t last = diagonal ? index_ + 1 : run_.sections;
  for (int64_t s = diagonal ? index_ : index_ + 1; s < last; ++s) {
    const int32_t changed = __ldcg(&work_.section_changed[s]);
    const int32_t sweeps = changed < first ? 1 : changed + 2 - first;
    if (sweeps % 2 == 0) continue;
    const PublishedRegion region = RegionOf(part, s, bad);
    const int64_t rows = region.row_end - region.row;
    const int64_t elements = rows * (region.column_end - region.column);
    for (int64_t e = int64_t{blockIdx.x} * kThreads + threadIdx.x; e < elements;
         e += int64_t{gridDim.x} * kThreads) {
      const int64_t i = region.row + e % rows;
      const int64_t j = region.column + e / rows;
      work_.lu(i, j) = LoadFresh(&work_.next[i + j * n_]);
    }
  }
}

// Called by one block. Finds the first non-finite element, and whether a zero l_ii caused it.
template <class T, int kTile>
__device__ void PublishedSection<T, kTile>::ConcludeNotFinite(const PublishedRegion& region,
                                                              bool diagonal) {
  const int64_t rows = region.row_end - region.row;
  const int64_t elements = rows * (region.column_end - region.column);
  unsigned long long position = kNoPosition;
  for (int64_t e = threadIdx.x; e < elements; e += kThreads) {
    const int64_t i = region.row + e % rows;
    const int64_t j = region.column + e / rows;
    const unsigned long long key = PositionKey(i, j);
    if (key < position && !IsFinite(Source(0)(i, j))) position = key;
  }
  if (position != kNoPosition) atomicMin(&run_.state->position, position);
  __syncthreads();
  if (!leads_) return;
  position = run_.state->position;
  const auto i = static_cast<int64_t>(position >> 21 & 0x1fffff);
  const auto j = static_cast<int64_t>(position & 0x1fffff);
  if (diagonal && i < j && Source(0)(i, i) == T{0}) return EndWith(i + 1);
  run_.state->end = static_cast<int32_t>(IcmEnd::kNotFinite);
}

template <class T, int kTile>
template <class F>
__device__ int64_t PublishedSection<T, kTile>::First(const PublishedSource<T>& at, int64_t from,
                                                     F is) {
  __syncthreads();
  if (threadIdx.x == 0) shared_.first = kNoIndex;
  __syncthreads();
  for (int64_t j = from + threadIdx.x; j < end_; j += kThreads) {
    if (!is(at(j, j))) continue;
    atomicMin(&shared_.first, static_cast<int>(j));
    break;
  }
  __syncthreads();
  return shared_.first == kNoIndex ? end_ : shared_.first;
}

// Returns false if all candidates are zero.
template <class T, int kTile>
__device__ bool PublishedSection<T, kTile>::Pivot(int64_t bad) {
  FindLargest(&work_.lu(0, bad), bad, n_, shared_.candidates);
  const int64_t from = shared_.candidates.row[0];
  SyncGrid();  // all blocks have read the candidates before rows move
  if (from == n_) {
    EndWith(bad + 1);
    return false;
  }
  if (leads_) ++run_.bad_elements[index_];
  if (from == bad) return true;
  for (int64_t j = int64_t{blockIdx.x} * kThreads + threadIdx.x; j < n_;
       j += int64_t{gridDim.x} * kThreads) {
    const auto exchange = [&](T* x) {
      const T aside = LoadFresh(&x[bad]);
      x[bad] = LoadFresh(&x[from]);
      x[from] = aside;
    };
    exchange(&work_.lu(0, j));
    exchange(work_.a + j * n_);
    exchange(work_.sums + j * n_);
  }
  if (leads_) {
    const int64_t aside = work_.rows[bad];
    work_.rows[bad] = work_.rows[from];
    work_.rows[from] = aside;
    ++run_.pivots[index_];
    ++run_.state->interchanges;
  }
  SyncGrid();
  return true;
}

template <class T, int kTile>
__device__ void PublishedSection<T, kTile>::AddProducts() {
  const PublishedRegion region = {end_, n_, end_, n_};
  const int64_t down = Tiles(n_ - end_);
  for (int64_t tile = blockIdx.x; tile < down * down; tile += gridDim.x) {
    const int64_t row = end_ + tile % down * kTile;
    const int64_t column = end_ + tile / down * kTile;
    const T sum = Sum(Source(0), Source(0), row, column, region);
    const int64_t i = row + row_;
    const int64_t j = column + column_;
    if (i < n_ && j < n_) work_.sums[i + j * n_] = sum;
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_PUBLISHED_RUN_CUH_
