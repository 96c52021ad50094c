// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/multifrontal/inspection.h"

#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/multifrontal/binary_search.cuh"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace {

constexpr int kThreads = kBlockThreads;

unsigned BlocksFor(int64_t count, int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

// Returns true if column k of a front contains only zeros below its pivot, in rows before `end`.
template <class T>
__device__ bool IsEmptyBelow(const MatrixView<const T>& panel, int64_t k, int64_t end) {
  for (int64_t i = k + 1; i < end; ++i) {
    if (panel(i, k) != T{0}) return false;
  }
  return true;
}

// The number of the front's rows that it or a later front eliminates: those among the first
// `positions`.
__device__ int64_t EliminatedRows(const Front& front, const int32_t* border, int64_t positions) {
  const int32_t* const of_front = border + front.border;
  return front.d1 +
         FirstNotLess(front.d2, positions, [of_front](int i) { return int64_t{of_front[i]}; });
}

// One thread per position of the first `fronts` fronts.
template <class T>
__global__ void __launch_bounds__(kThreads)
    InspectPivotsKernel(FrontTree tree, int64_t positions, const int32_t* border, const T* factor,
                        MinPivots<T> bounds, PivotRecord<T> record, NumericReport* report) {
  const int64_t position = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  int perturbed = 0;
  int interchanges = 0;
  int negative = 0;
  if (position < positions) {
    const Front front = tree.fronts[FrontOf(tree, position)];
    const int64_t k = position - front.first;
    const auto panel = front.Panel<const T>(factor);
    const T u = panel(k, k);
    const auto from = static_cast<int32_t>(record.made[position] - 1);
    record.interchanges[position] = from;
    record.diagonal[position] = u;
    interchanges = from != k;
    const uint8_t pivot_flags = bounds.pivot_flags[position];
    perturbed = pivot_flags != 0;
    if constexpr (!kIsComplex<T>) negative = u < 0;
    if (pivot_flags == 0 && Abs1(u) < bounds.least[position]) report->too_small = 1;
    if (pivot_flags == MinPivots<T>::kPerturbedZero &&
        IsEmptyBelow<T>(panel, k, EliminatedRows(front, border, positions))) {
      atomicMax(&report->least_inverse, ~static_cast<uint32_t>(position + 1));
    }
  }
  perturbed = BlockReduce(perturbed, Sum());
  interchanges = BlockReduce(interchanges, Sum());
  negative = BlockReduce(negative, Sum());
  if (threadIdx.x != 0) return;
  if (perturbed != 0) atomicAdd(&report->perturbed, perturbed);
  if (interchanges != 0) atomicAdd(&report->interchanges, interchanges);
  if (negative != 0) atomicAdd(&report->negative, negative);
}

// One warp per front that is not large. Applies its interchanges one after the other; a lane holds
// every 32nd row.
__global__ void __launch_bounds__(kThreads)
    PermutationKernel(FrontTree tree, int fronts, const int64_t* made, int32_t* permutation) {
  static_assert(kLargeForPermutations <= 2 * kWarp);
  const int64_t f = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp;
  if (f >= fronts) return;
  const Front front = tree.fronts[f];
  if (front.d1 >= kLargeForPermutations) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  int rows[2] = {lane, lane + kWarp};
  int from[2];
  for (int r = 0; r < 2; ++r) {
    const int k = lane + r * kWarp;
    from[r] = k < front.d1 ? static_cast<int>(made[front.first + k] - 1) : 0;
  }
  const auto get = [](const int(&of_lanes)[2], int i) {
    return __shfl_sync(kAllLanes, i < kWarp ? of_lanes[0] : of_lanes[1], i % kWarp);
  };
  const auto set = [&](int i, int row) {
    if (i == lane) rows[0] = row;
    if (i == lane + kWarp) rows[1] = row;
  };
  for (int k = 0; k < front.d1; ++k) {
    const int p = get(from, k);
    const int row = get(rows, k);
    set(k, get(rows, p));
    set(p, row);
  }
  for (int r = 0; r < 2; ++r) {
    const int k = lane + r * kWarp;
    if (k < front.d1) permutation[front.first + k] = rows[r];
  }
}

// One warp per large front, in shared memory if the front fits.
constexpr int kMaxSharedElements = 8192;

__global__ void __launch_bounds__(kWarp)
    LargePermutationKernel(FrontTree tree, const int32_t* fronts, const int64_t* made,
                           int32_t* permutation) {
  __shared__ int32_t shared[kMaxSharedElements];
  const Front front = tree.fronts[fronts[blockIdx.x]];
  int32_t* const out = permutation + front.first;
  int32_t* const rows = front.d1 <= kMaxSharedElements ? shared : out;
  const auto lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < front.d1; i += kWarp) rows[i] = i;
  __syncwarp();
  for (int first = 0; first < front.d1; first += kWarp) {
    const int own =
        first + lane < front.d1 ? static_cast<int>(made[front.first + first + lane] - 1) : 0;
    for (int s = 0; s < min(kWarp, front.d1 - first); ++s) {
      const int from = __shfl_sync(kAllLanes, own, s);
      if (lane != 0) continue;
      const int32_t row = rows[first + s];
      rows[first + s] = rows[from];
      rows[from] = row;
    }
  }
  __syncwarp();
  if (rows == out) return;
  for (int i = lane; i < front.d1; i += kWarp) out[i] = rows[i];
}

// A race between threads is harmless: all of them store the same mark.
__device__ void MarkColumn(const Front& front, int64_t row, int64_t column,
                           const MultiplierLimit& acceptable, NumericReport* report) {
  if (acceptable.border[front.border + row - front.d1] >= acceptable.positions) return;
  report->unacceptable = 1;
  uint8_t& mark = acceptable.pivot_flags[front.first + column];
  if (mark == 0) mark = kUnacceptable;
}

// One warp per `each` elements of the factor.
template <class T>
__global__ void __launch_bounds__(kThreads)
    InspectFrontsKernel(FrontTree tree, const T* factor, int64_t entries, int64_t each,
                        MultiplierLimit acceptable, NumericReport* report) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t begin = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp * each;
  const int64_t end = min(begin + each, entries);
  int f = FirstNotLess(tree.count, begin + 1, [&](int i) { return tree.fronts[i].factor; }) - 1;
  double largest = 0;
  bool finite = true;
  for (int64_t from = begin; from < end; ++f) {
    const Front front = tree.fronts[f];
    const int64_t panel = front.size() * front.d1;
    const int64_t to = min(end, front.factor + panel + int64_t{front.d1} * front.d2);
    for (int64_t e = from + lane; e < to; e += kWarp) {
      const T value = factor[e];
      finite = finite && IsFinite(value);
      const int64_t within = e - front.factor;
      const int64_t column = within / front.size();
      const int64_t row = within - column * front.size();
      const bool upper = within >= panel || row <= column;
      const double size = Modulus(value);
      if (upper) {
        largest = fmax(largest, size);
      } else if (row >= front.d1 && size > acceptable.most) {
        MarkColumn(front, row, column, acceptable, report);
      }
    }
    from = max(from, to);
  }
  largest = BlockReduce(largest, [](double x, double y) { return fmax(x, y); });
  if (!finite) report->not_finite = 1;
  if (threadIdx.x == 0) atomicMax(&report->largest, AbsBits(largest));
}

// One thread per entry and per column. If rows and columns start at the same offsets, the entries
// in row order are those of the transpose.
template <class Source>
__global__ void __launch_bounds__(kThreads)
    CompareTransposedKernel(SparseView<Source> a, int64_t nonzeros, NumericReport* report) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  const bool column_differs = i < a.n && a.column_start[i] != a.row_start[i];
  const bool entry_differs =
      i < nonzeros && !(a.row[i] == a.column[i] && a.value[i] == a.value[a.position[i]]);
  if (column_differs || entry_differs) report->asymmetric = 1;
}

}  // namespace

template <class T>
cudaError_t LaunchInspectPivots(const FrontTree& tree, int fronts, int64_t positions,
                                const int32_t* border, const T* factor, const MinPivots<T>& bounds,
                                const PivotRecord<T>& record, NumericReport* report,
                                cudaStream_t stream) {
  if (fronts == 0 || positions == 0) return cudaSuccess;
  InspectPivotsKernel<<<BlocksFor(positions, kThreads), kThreads, 0, stream>>>(
      tree, positions, border, factor, bounds, record, report);
  PermutationKernel<<<BlocksFor(fronts, kThreads / kWarp), kThreads, 0, stream>>>(
      tree, fronts, record.made, record.permutation);
  if (record.large_count > 0) {
    LargePermutationKernel<<<static_cast<unsigned>(record.large_count), kWarp, 0, stream>>>(
        tree, record.large, record.made, record.permutation);
  }
  return cudaGetLastError();
}

template <class T>
cudaError_t LaunchInspectFronts(const FrontTree& tree, const T* factor, int64_t entries,
                                const MultiplierLimit& acceptable, NumericReport* report,
                                cudaStream_t stream) {
  if (entries == 0) return cudaSuccess;
  // Elements per warp. Warps with fewer elements would spend longer on the search for their first
  // front than on reading. Elements may span many fronts, so warps with more elements would leave
  // multiprocessors idle.
  constexpr int64_t kFewest = 256;
  constexpr int64_t kMax = 8192;
  constexpr int64_t kWarps = 8192;
  const int64_t each = std::clamp(entries / kWarps, kFewest, kMax);
  InspectFrontsKernel<<<BlocksFor(entries, each * (kThreads / kWarp)), kThreads, 0, stream>>>(
      tree, factor, entries, each, acceptable, report);
  return cudaGetLastError();
}

cudaError_t LaunchCompareTransposed(const AnySparse& a, NumericReport* report,
                                    cudaStream_t stream) {
  const int64_t count = a.n > a.nonzeros ? a.n : a.nonzeros;
  if (count == 0 || IsComplex(a.dtype)) return cudaSuccess;
  return DispatchReal(a.dtype, [&](auto tag) {
    using Source = typename decltype(tag)::type;
    CompareTransposedKernel<<<BlocksFor(count, kThreads), kThreads, 0, stream>>>(
        a.As<Source>(), a.nonzeros, report);
    return cudaGetLastError();
  });
}

#define CROUT_INSTANTIATE(T)                                                                     \
  template cudaError_t LaunchInspectPivots(const FrontTree&, int, int64_t, const int32_t*,       \
                                           const T*, const MinPivots<T>&, const PivotRecord<T>&, \
                                           NumericReport*, cudaStream_t);                        \
  template cudaError_t LaunchInspectFronts(const FrontTree&, const T*, int64_t,                  \
                                           const MultiplierLimit&, NumericReport*, cudaStream_t);
CROUT_INSTANTIATE(float)
CROUT_INSTANTIATE(double)
CROUT_INSTANTIATE(Complex<float>)
CROUT_INSTANTIATE(Complex<double>)
#undef CROUT_INSTANTIATE

}  // namespace crout::cuda
