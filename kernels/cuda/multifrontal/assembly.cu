// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/multifrontal/assembly.h"

#include <algorithm>
#include <limits>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/multifrontal/binary_search.cuh"
#include "kernels/cuda/multifrontal/child_in_lane.cuh"
#include "kernels/cuda/ops/reduction.cuh"
#include "kernels/sparse/entry_scales.h"

namespace crout::cuda {
namespace {

constexpr int kThreads = 256;

unsigned BlocksFor(int64_t count, int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

// Entry e of a, which lies in `column`, scaled and converted to T.
template <class T, class Source>
__device__ T Scaled(const SparseView<Source>& a, const FrontScales& scales, int64_t e,
                    int64_t column) {
  const Source value = a.value[e];
  if (scales.row == nullptr) return static_cast<T>(value);
  const auto wide = ToFloat64(value);
  const EntryScales by = InOrder(LargestPart(wide), scales.row[a.row[e]], scales.column[column]);
  return static_cast<T>(wide * by.first * by.second);
}

// One thread per front, in traversal order.
__global__ void __launch_bounds__(kThreads) PackFrontsKernel(FrontArrays from, Front* fronts) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i >= from.fronts) return;
  const int step =
      FirstNotLess(from.steps, i + 1, [&](int s) { return int64_t{from.step_start[s]}; }) - 1;
  const int32_t f = from.order[i];
  const int64_t border = from.border_start[f];
  const int32_t first = from.first_position[f];
  fronts[f] = {from.factor_start[f],
               from.shift[step] + from.contribution_start[f],
               border,
               first,
               from.first_position[f + 1] - first,
               static_cast<int32_t>(from.border_start[f + 1] - border),
               from.parent[f],
               from.child_start[f],
               from.child_start[f + 1]};
}

// One thread per position.
__global__ void __launch_bounds__(kThreads)
    PlacePositionsKernel(FrontTree tree, int64_t n, const int32_t* row_order,
                         const int32_t* column_order, FrontPositions to) {
  const int64_t k = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (k >= n) return;
  to.of_row[row_order[k]] = static_cast<int32_t>(k);
  to.of_column[column_order[k]] = static_cast<int32_t>(k);
  to.front[k] = FrontOf(tree, k);
}

// One warp per front. Finds the places of the front's border positions in its parent.
__global__ void __launch_bounds__(kThreads)
    PlaceBordersKernel(FrontTree tree, const int32_t* border, int32_t* place) {
  const int64_t f = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp;
  if (f >= tree.count) return;
  const Front front = tree.fronts[f];
  if (front.d2 == 0) return;
  const Front parent = tree.fronts[front.parent];
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < front.d2; i += kWarp) {
    place[front.border + i] = PlaceIn(parent, border, border[front.border + i]);
  }
}

// One warp per front. Computes the positions of the front's border from their places in its parent:
// follows each place up to the front that eliminates it.
__global__ void __launch_bounds__(kThreads) NumberBordersKernel(FrontTree tree, int32_t* border) {
  const int64_t f = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp;
  if (f >= tree.count) return;
  const Front front = tree.fronts[f];
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < front.d2; i += kWarp) {
    int32_t place = tree.place[front.border + i];
    const Front* up = &tree.fronts[front.parent];
    while (place >= up->d1) {
      place = tree.place[up->border + place - up->d1];
      up = &tree.fronts[up->parent];
    }
    border[front.border + i] = up->first + place;
  }
}

// One warp per column of A.
template <class T, class Source>
__global__ void __launch_bounds__(kThreads)
    PutEntriesKernel(FrontTree tree, FrontPositions positions, const int32_t* border,
                     SparseView<Source> a, FrontScales scales, T* factor) {
  const int64_t j = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp;
  if (j >= a.n) return;
  const int32_t column = positions.of_column[j];
  const int64_t end = a.column_start[j + 1];
  for (int64_t e = a.column_start[j] + threadIdx.x % kWarp; e < end; e += kWarp) {
    const int32_t row = positions.of_row[a.row[e]];
    const Front front = tree.fronts[positions.front[min(row, column)]];
    const int32_t i = PlaceIn(front, border, row);
    const int32_t k = PlaceIn(front, border, column);
    if (i < 0 || k < 0) continue;  // the entry is outside of the analyzed pattern
    T& to = k < front.d1 ? front.Panel(factor)(i, k) : front.U12(factor)(i, k - front.d1);
    to = Scaled<T>(a, scales, e, j);
  }
}

// One warp per column: largest_of[k] := its largest entry in rows that are not kept.
template <class T, class Source>
__global__ void __launch_bounds__(kThreads)
    LargestOfColumnsKernel(SparseView<Source> a, FrontScales scales, const int32_t* column_order,
                           KeptRows kept, RealPart<T>* largest_of, NumericReport* report) {
  const int64_t k = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  double most = 0;
  double largest = 0;
  if (k < a.n) {
    const int32_t j = column_order[k];
    for (int64_t e = a.column_start[j] + lane; e < a.column_start[j + 1]; e += kWarp) {
      const T value = Scaled<T>(a, scales, e, j);
      largest = fmax(largest, Modulus(value));
      const bool is_kept = kept.of_row != nullptr && kept.of_row[a.row[e]] >= kept.first;
      if (!is_kept) most = fmax(most, static_cast<double>(Abs1(value)));
    }
  }
  const auto greater = [](double x, double y) { return fmax(x, y); };
  most = WarpReduce(most, greater);
  if (lane == 0 && k < a.n) largest_of[k] = static_cast<RealPart<T>>(most);
  largest = BlockReduce(largest, greater);
  if (threadIdx.x == 0) atomicMax(&report->max_abs, AbsBits(largest));
}

// On entry, `least` holds the largest entries.
template <class Real>
__global__ void __launch_bounds__(kThreads)
    MinPivotsKernel(FrontTree tree, int64_t n, double with_border, double without,
                    const NumericReport* report, Real* least) {
  const int64_t k = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (k >= n) return;
  const double largest = FromBits(report->max_abs);
  const double factor = tree.fronts[FrontOf(tree, k)].d2 > 0 ? with_border : without;
  const double most = least[k] > 0 ? static_cast<double>(least[k]) : largest > 0 ? largest : 1;
  constexpr Real kSmallest = std::numeric_limits<Real>::min() * 4;
  constexpr Real kLargest = std::numeric_limits<Real>::max();
  const auto wanted = static_cast<Real>(factor * most);
  least[k] = wanted < kSmallest ? kSmallest : wanted > kLargest ? kLargest : wanted;
}

__global__ void __launch_bounds__(kThreads) PlaceMembersKernel(FrontTree tree, FrontMembers to) {
  const int64_t f = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (f >= tree.count) return;
  const Front front = tree.fronts[f];
  const auto size = static_cast<int32_t>(front.size());
  to.f11[f] = {front.factor, front.first, front.d1, front.d1, size};
  to.f21[f] = {front.factor + front.d1, front.first, front.d2, front.d1, size};
  to.f12[f] = {front.factor + front.size() * front.d1, front.first, front.d1, front.d2, front.d1};
  to.f22[f] = {front.contribution, front.border, front.d2, front.d2, max(1, front.d2)};
}

constexpr int kColumns = kColumnsOfExtendAdd;

// One block per front and kColumns of its columns; a block handles several such groups if the grid
// is too small. A warp adds one column of a child at a time.

template <class T>
__global__ void __launch_bounds__(kThreads)
    ExtendAddKernel(FrontTree tree, const int32_t* order, T* factor, T* contributions) {
  const Front front = tree.fronts[order[blockIdx.x]];
  const MatrixView<T> panel = front.Panel(factor);
  const MatrixView<T> u12 = front.U12(factor);
  const MatrixView<T> rest = front.Contribution(contributions);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t first = blockIdx.y * int64_t{kColumns}; first < front.size();
       first += gridDim.y * int64_t{kColumns}) {
    for (int32_t c = front.child_begin; c < front.child_end; ++c) {
      const Front child = tree.fronts[tree.child[c]];
      const int32_t* const place = tree.place + child.border;
      const auto at = [place](int i) { return int64_t{place[i]}; };
      const int begin = FirstNotLess(child.d2, first, at);
      const int end = FirstNotLess(child.d2, first + kColumns, at);
      const MatrixView<const T> from = child.Contribution<const T>(contributions);
      constexpr int kWarps = kThreads / kWarp;
      constexpr int kColumnsPerWarp = kColumns / kWarps;  // the most columns that a warp can have
      T* upper[kColumnsPerWarp];
      T* lower[kColumnsPerWarp];
      int mine = 0;
#pragma unroll
      for (int s = 0; s < kColumnsPerWarp; ++s) {
        const int j = begin + warp + s * kWarps;
        upper[s] = lower[s] = nullptr;
        if (j >= end) continue;
        mine = s + 1;
        const int32_t column = place[j];
        const bool own = column < front.d1;
        upper[s] = own ? &panel(0, column) : &u12(0, column - front.d1);
        lower[s] = own ? upper[s] : &rest(0, column - front.d1) - front.d1;
      }
      if (mine > 0) {
        const T* const x = &from(0, begin + warp);
#pragma unroll 2
        for (int i = lane; i < child.d2; i += kWarp) {
          const int32_t row = place[i];
          T added[kColumnsPerWarp];
          T there[kColumnsPerWarp];
#pragma unroll
          for (int s = 0; s < kColumnsPerWarp; ++s) {
            if (s >= mine) break;
            added[s] = x[i + s * kWarps * from.ld];
            there[s] = *(row < front.d1 ? upper[s] + row : lower[s] + row);
          }
#pragma unroll
          for (int s = 0; s < kColumnsPerWarp; ++s) {
            if (s >= mine) break;
            *(row < front.d1 ? upper[s] + row : lower[s] + row) = there[s] + added[s];
          }
        }
      }
      __syncthreads();
    }
  }
}

// From this number of children on, the columns of a front are assembled one by one. A block that
// handles several columns iterates over the children and waits for each child before it reads the
// next.
constexpr int32_t kManyToAdd = 16;

// One warp per column of a front. It sums in shared memory, where it has `rows` elements.
template <class T>
__global__ void __launch_bounds__(kThreads)
    ExtendAddOfManyKernel(FrontTree tree, const int32_t* order, int rows, T* factor,
                          T* contributions) {
  extern __shared__ double2 shared[];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  T* const sums = reinterpret_cast<T*>(shared) + int64_t{warp} * rows;
  const Front front = tree.fronts[order[blockIdx.x]];
  const auto size = static_cast<int>(front.size());
  const int j = static_cast<int>(blockIdx.y) * (kThreads / kWarp) + warp;
  if (j >= size) return;  // uniform in the warp
  const bool own = j < front.d1;
  T* const upper = own ? &front.Panel(factor)(0, j) : &front.U12(factor)(0, j - front.d1);
  T* const lower = own ? upper : &front.Contribution(contributions)(0, j - front.d1) - front.d1;
  for (int i = lane; i < size; i += kWarp) sums[i] = (i < front.d1 ? upper : lower)[i];
  __syncwarp();
  for (int32_t first = front.child_begin; first < front.child_end; first += kWarp) {
    // Each lane searches for the column in one child.
    ChildInLane<T> of_lane;
    bool has = false;
    if (first + lane < front.child_end) {
      const Front& child = tree.fronts[tree.child[first + lane]];
      of_lane = {contributions + child.contribution, tree.place + child.border, child.d2};
      const int at = FirstNotLess(of_lane.d2, j, [&](int i) { return of_lane.place[i]; });
      has = at < of_lane.d2 && of_lane.place[at] == j;
      of_lane.from += int64_t{at} * of_lane.d2;
    }
    // The children that have the column add theirs one after the other. The first elements of
    // several children are loaded at once.
    for (unsigned having = __ballot_sync(kAllLanes, has); having != 0;) {
      constexpr int kUnroll = 4;
      ChildInLane<T> child[kUnroll];
      T value[kUnroll];
      int row[kUnroll];
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) {
        row[s] = -1;
        if (having == 0) continue;
        child[s] = of_lane.FromLane(__ffs(static_cast<int>(having)) - 1);
        having &= having - 1;
        if (lane < child[s].d2) {
          row[s] = child[s].place[lane];
          value[s] = child[s].from[lane];
        }
      }
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) {
        if (row[s] >= 0) sums[row[s]] += value[s];
        for (int i = lane + kWarp; i < child[s].d2; i += kWarp) {
          sums[child[s].place[i]] += child[s].from[i];
        }
        __syncwarp();
      }
    }
  }
  for (int i = lane; i < size; i += kWarp) (i < front.d1 ? upper : lower)[i] = sums[i];
}

}  // namespace

cudaError_t LaunchPackFronts(const FrontArrays& arrays, Front* fronts, cudaStream_t stream) {
  if (arrays.fronts == 0) return cudaSuccess;
  PackFrontsKernel<<<BlocksFor(arrays.fronts, kThreads), kThreads, 0, stream>>>(arrays, fronts);
  return cudaGetLastError();
}

cudaError_t LaunchPlacePositions(const FrontTree& tree, int64_t n, const int32_t* row_order,
                                 const int32_t* column_order, const FrontPositions& to,
                                 cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  PlacePositionsKernel<<<BlocksFor(n, kThreads), kThreads, 0, stream>>>(tree, n, row_order,
                                                                        column_order, to);
  return cudaGetLastError();
}

cudaError_t LaunchPlaceBorders(const FrontTree& tree, const int32_t* border, int32_t* place,
                               cudaStream_t stream) {
  if (tree.count == 0) return cudaSuccess;
  PlaceBordersKernel<<<BlocksFor(tree.count, kThreads / kWarp), kThreads, 0, stream>>>(tree, border,
                                                                                       place);
  return cudaGetLastError();
}

cudaError_t LaunchNumberBorders(const FrontTree& tree, int32_t* border, cudaStream_t stream) {
  if (tree.count == 0) return cudaSuccess;
  NumberBordersKernel<<<BlocksFor(tree.count, kThreads / kWarp), kThreads, 0, stream>>>(tree,
                                                                                        border);
  return cudaGetLastError();
}

template <class T>
cudaError_t LaunchPutEntries(const FrontTree& tree, const FrontPositions& positions,
                             const int32_t* border, const AnySparse& a, const FrontScales& scales,
                             T* factor, cudaStream_t stream) {
  if (a.n == 0) return cudaSuccess;
  return DispatchDevice(a.dtype, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    if constexpr (kIsComplex<T> == kIsComplex<Source>) {
      PutEntriesKernel<<<BlocksFor(a.n, kThreads / kWarp), kThreads, 0, stream>>>(
          tree, positions, border, a.As<Source>(), scales, factor);
      return cudaGetLastError();
    } else {
      return cudaErrorInvalidValue;
    }
  });
}

template <class T>
cudaError_t LaunchMinPivots(const FrontTree& tree, const AnySparse& a, const FrontScales& scales,
                            const int32_t* column_order, const KeptRows& kept, PivotBounds bounds,
                            RealPart<T>* least, NumericReport* report, cudaStream_t stream) {
  if (a.n == 0) return cudaSuccess;
  const cudaError_t code = DispatchDevice(a.dtype, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    if constexpr (kIsComplex<T> == kIsComplex<Source>) {
      LargestOfColumnsKernel<T><<<BlocksFor(a.n, kThreads / kWarp), kThreads, 0, stream>>>(
          a.As<Source>(), scales, column_order, kept, least, report);
      return cudaGetLastError();
    } else {
      return cudaErrorInvalidValue;
    }
  });
  if (code != cudaSuccess) return code;
  MinPivotsKernel<<<BlocksFor(a.n, kThreads), kThreads, 0, stream>>>(tree, a.n, bounds.with_border,
                                                                     bounds.without, report, least);
  return cudaGetLastError();
}

cudaError_t LaunchPlaceMembers(const FrontTree& tree, const FrontMembers& members,
                               cudaStream_t stream) {
  if (tree.count == 0) return cudaSuccess;
  PlaceMembersKernel<<<BlocksFor(tree.count, kThreads), kThreads, 0, stream>>>(tree, members);
  return cudaGetLastError();
}

template <class T>
cudaError_t LaunchExtendAdd(const FrontTree& tree, const FrontSet& set, T* factor, T* contributions,
                            cudaStream_t stream) {
  if (set.count == 0) return cudaSuccess;
  constexpr int kWarps = kThreads / kWarp;
  constexpr size_t kMaxSharedBytes = 48 << 10;
  const size_t shared_bytes = sizeof(T) * kWarps * set.size;
  if (set.children >= kManyToAdd && shared_bytes <= kMaxSharedBytes) {
    const dim3 of_columns(static_cast<unsigned>(set.count), BlocksOf(set.size, kWarps));
    ExtendAddOfManyKernel<<<of_columns, kThreads, shared_bytes, stream>>>(tree, set.order, set.size,
                                                                          factor, contributions);
    return cudaGetLastError();
  }
  const dim3 grid(static_cast<unsigned>(set.count), BlocksOf(set.size, kColumns));
  ExtendAddKernel<<<grid, kThreads, 0, stream>>>(tree, set.order, factor, contributions);
  return cudaGetLastError();
}

#define CROUT_INSTANTIATE(T)                                                                      \
  template cudaError_t LaunchPutEntries(const FrontTree&, const FrontPositions&, const int32_t*,  \
                                        const AnySparse&, const FrontScales&, T*, cudaStream_t);  \
  template cudaError_t LaunchMinPivots<T>(const FrontTree&, const AnySparse&, const FrontScales&, \
                                          const int32_t*, const KeptRows&, PivotBounds,           \
                                          RealPart<T>*, NumericReport*, cudaStream_t);            \
  template cudaError_t LaunchExtendAdd(const FrontTree&, const FrontSet&, T*, T*, cudaStream_t);
CROUT_INSTANTIATE(float)
CROUT_INSTANTIATE(double)
CROUT_INSTANTIATE(Complex<float>)
CROUT_INSTANTIATE(Complex<double>)
#undef CROUT_INSTANTIATE

}  // namespace crout::cuda
