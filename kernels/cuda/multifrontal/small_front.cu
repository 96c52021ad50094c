// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/multifrontal/small_front.h"

#include "kernels/cuda/device/block_sync.cuh"
#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/pivot.cuh"
#include "kernels/cuda/multifrontal/binary_search.cuh"
#include "kernels/cuda/multifrontal/child_in_lane.cuh"

namespace crout::cuda {
namespace small_front {

constexpr int kThreads = 128;
constexpr int kTinyFronts = kThreads / kWarp;  // per block
// Elements that a thread loads at once, if there are that many.
constexpr int kUnroll = 4;

template <class T, int kSize>
struct FrontShared {
  T f[kSize][kSize + 1];  // [column][row]
  RealPart<T> least[kSize];
};

template <class T>
struct Shared {
  int32_t block;
  union {
    FrontShared<T, kTinyFront> tiny[kTinyFronts];
    FrontShared<T, kSmallFront> small;
  };
};

// The factorization of one front by a team of threads, a warp or a block. Columns are distributed
// to the team's warps in turn; a lane handles every 32nd row.
template <class T, int kSize, int kTeam>
class Lu {
 public:
  __device__ Lu(const FrontTree& tree, const Front& front, FrontShared<T, kSize>& shared)
      : tree_(tree),
        front_(front),
        size_(static_cast<int>(front.size())),
        f_(shared.f),
        least_(shared.least),
        thread_(static_cast<int>(threadIdx.x) % kTeam),
        warp_(thread_ / kWarp),
        lane_(thread_ % kWarp) {}

  // Loads everything that does not depend on the children.
  __device__ void Load(const T* factor, const RealPart<T>* least) const {
    const auto panel = front_.Panel<const T>(factor);
    const auto u12 = front_.U12<const T>(factor);
    for (int k = thread_; k < front_.d1; k += kTeam) least_[k] = least[k];
    for (int first = warp_; first < size_; first += kUnroll * kWarps) {
      T x[kUnroll][kRows];
      ForColumns(first, [&](int s, int j) {
        for (int r = 0; r < kRows; ++r) {
          const int i = lane_ + r * kWarp;
          x[s][r] = i >= size_      ? T{0}
                    : j < front_.d1 ? panel(i, j)
                    : i < front_.d1 ? u12(i, j - front_.d1)
                                    : T{0};
        }
      });
      ForColumns(first, [&](int s, int j) {
        for (int r = 0; r < kRows; ++r) {
          const int i = lane_ + r * kWarp;
          if (i < size_) f_[j][i] = x[s][r];
        }
      });
    }
    Sync();
  }

  // Adds the children one after the other, in order. `arrivals`: the count of this front's finished
  // children; null if all are finished.
  __device__ void AddChildren(const T* contributions, const int32_t* arrivals) const {
    for (int32_t first = front_.child_begin; first < front_.child_end; first += kWarp) {
      // Each lane holds one child.
      Child own;
      const int count = min(kWarp, front_.child_end - first);
      if (lane_ < count) {
        const Front& child = tree_.fronts[tree_.child[first + lane_]];
        own = {contributions + child.contribution, tree_.place + child.border, child.d2};
      }
      if (first == front_.child_begin && arrivals != nullptr) {
        if (thread_ == 0) AwaitArrivals(arrivals, front_.child_end - front_.child_begin);
        Sync();
      }
      // The first elements of several children are loaded at once.
      for (int c = 0; c < count; c += kUnroll) {
        Child child[kUnroll];
        T value[kUnroll];
        T* to[kUnroll];
#pragma unroll
        for (int s = 0; s < kUnroll; ++s) {
          if (c + s >= count) break;
          child[s] = own.FromLane(c + s);
          to[s] = Find(child[s], thread_, value[s]);
        }
#pragma unroll
        for (int s = 0; s < kUnroll; ++s) {
          if (c + s >= count) break;
          if (to[s] != nullptr) *to[s] += value[s];
          AddFrom(child[s], kTeam);
          Sync();
        }
      }
    }
  }

  __device__ void Factor(int64_t* ipiv, uint8_t* pivot_flags) const {
    const MinPivots<T> bounds = {least_, pivot_flags};
    for (int k = 0; k < front_.d1; ++k) {
      // Every warp computes the same pivot and multipliers. Column k is not modified until all
      // warps have synchronized.
      T l[kRows];
      PivotCandidate best;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int i = lane_ + r * kWarp;
        l[r] = i < size_ ? f_[k][i] : T{0};
        if (i >= k && i < front_.d1) best.Take(KeyOf(l[r]), i);
      }
      const int lane_of_pivot = __ffs(static_cast<int>(BestLane(best))) - 1;
      const int p = __shfl_sync(kAllLanes, best.place, lane_of_pivot);
      const T of_row_k = f_[k][k];
      const T pivot = PerturbPivot(f_[k][p], bounds, k, thread_ == 0);
      if (thread_ == 0) ipiv[k] = p + 1;
      const DivideBy<T> divide(pivot);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        l[r] = divide(lane_ + r * kWarp == p ? of_row_k : l[r]);
      }
      for (int first = warp_; first < size_; first += kUnroll * kWarps) {
        ExchangeAndSubtract(first, k, p, l);
      }
      Sync();
      if (warp_ == k % kWarps) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const int i = lane_ + r * kWarp;
          if (i >= k && i < size_) f_[k][i] = i == k ? pivot : l[r];
        }
        __syncwarp();
      }
    }
    Sync();
  }

  // Stores the contribution first, because the parent waits for it.
  __device__ void StoreContribution(T* contributions) const {
    const auto rest = front_.Contribution(contributions);
    for (int j = front_.d1 + warp_; j < size_; j += kWarps) {
      for (int i = front_.d1 + lane_; i < size_; i += kWarp) {
        rest(i - front_.d1, j - front_.d1) = f_[j][i];
      }
    }
  }
  __device__ void SignalParent(int32_t* arrivals) const {
    Sync();
    if (thread_ == 0) SignalArrival(arrivals);
  }
  __device__ void StoreFactor(T* factor) const {
    const auto panel = front_.Panel(factor);
    const auto u12 = front_.U12(factor);
    for (int j = warp_; j < size_; j += kWarps) {
      const bool own = j < front_.d1;
      T* const to = own ? &panel(0, j) : &u12(0, j - front_.d1);
      const int rows = own ? size_ : front_.d1;
      for (int i = lane_; i < rows; i += kWarp) to[i] = f_[j][i];
    }
  }

 private:
  static constexpr int kWarps = kTeam / kWarp;
  static constexpr int kRows = kSize / kWarp;  // per lane

  static __device__ void Sync() {
    if constexpr (kTeam == kWarp) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  // Calls f(s, column) for this warp's next kUnroll columns, from `first` on.
  template <class F>
  __device__ void ForColumns(int first, F f) const {
#pragma unroll
    for (int s = 0; s < kUnroll; ++s) {
      const int j = first + s * kWarps;
      if (j < size_) f(s, j);
    }
  }

  using Child = ChildInLane<T>;

  // Element e of the child's contribution, and its destination; null if there is no such element.
  __device__ T* Find(const Child& child, int e, T& value) const {
    if (e >= child.d2 * child.d2) return nullptr;
    const int j = e / child.d2;
    const int i = e - j * child.d2;
    value = child.from[e];
    return &f_[child.place[j]][child.place[i]];
  }

  // Adds all elements from `begin` on.
  __device__ void AddFrom(const Child& child, int begin) const {
    for (int e = begin + thread_; e < child.d2 * child.d2; e += kUnroll * kTeam) {
      T value[kUnroll];
      T* to[kUnroll];
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) to[s] = Find(child, e + s * kTeam, value[s]);
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) {
        if (to[s] != nullptr) *to[s] += value[s];
      }
    }
  }

  // In this warp's next kUnroll columns except k: exchanges rows k and p. In columns right of k,
  // subtracts l times row k from the rows below it.
  __device__ void ExchangeAndSubtract(int first, int k, int p, const T (&l)[kRows]) const {
    T u[kUnroll], of_row_k[kUnroll], x[kUnroll][kRows];
    ForColumns(first, [&](int s, int j) {
      u[s] = f_[j][p];
      of_row_k[s] = f_[j][k];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int i = lane_ + r * kWarp;
        if (i < size_) x[s][r] = f_[j][i];
      }
    });
    __syncwarp();
    ForColumns(first, [&](int s, int j) {
      if (j == k) return;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int i = lane_ + r * kWarp;
        if (i < k || i >= size_) continue;
        const T value = i == k ? u[s] : i == p ? of_row_k[s] : x[s][r];
        f_[j][i] = i > k && j > k ? MinusProduct(value, l[r], u[s]) : value;
      }
    });
    __syncwarp();
  }

  const FrontTree& tree_;
  const Front& front_;
  const int size_;
  T (&f_)[kSize][kSize + 1];
  RealPart<T> (&least_)[kSize];
  const int thread_;
  const int warp_;
  const int lane_;
};

template <class T>
struct Work {
  FrontTree tree;
  const int32_t* order;
  SmallFronts fronts;
  T* factor;
  T* contributions;
  int64_t* ipiv;
  MinPivots<T> least;
  FrontArrivals arrivals;
};

template <class T, int kSize, int kTeam>
__device__ void FactorFront(const Work<T>& work, int32_t f, bool awaits,
                            FrontShared<T, kSize>& shared) {
  const Front front = work.tree.fronts[f];
  int32_t* const arrivals = work.arrivals.children;
  const Lu<T, kSize, kTeam> lu(work.tree, front, shared);
  lu.Load(work.factor, work.least.least + front.first);
  lu.AddChildren(work.contributions, awaits ? arrivals + f : nullptr);
  lu.Factor(work.ipiv + front.first, work.least.pivot_flags + front.first);
  lu.StoreContribution(work.contributions);
  if (arrivals != nullptr && front.parent >= 0) lu.SignalParent(arrivals + front.parent);
  lu.StoreFactor(work.factor);
}

// If fronts wait for others, blocks take fronts in the order in which the blocks start to run. So
// every front that a block waits for belongs to a block that is already running.
template <class T>
__global__ void __launch_bounds__(kThreads)
    SmallFrontsKernel(const __grid_constant__ Work<T> work) {
  auto& shared = SharedByBlock<Shared<T>>();
  auto block = static_cast<int32_t>(blockIdx.x);
  if (work.arrivals.children != nullptr) {
    if (threadIdx.x == 0) shared.block = atomicAdd(work.arrivals.block, 1);
    __syncthreads();
    block = shared.block;
  }
  const int b = FirstNotLess(work.fronts.count(), block + 1,
                             [&](int i) { return work.fronts[i].first_block; }) -
                1;
  const SmallFronts::Batch& batch = work.fronts[b];
  const int32_t within = block - batch.first_block;
  if (batch.tiny) {
    const auto warp = static_cast<int>(threadIdx.x) / kWarp;
    const int32_t i = batch.begin + within * kTinyFronts + warp;
    if (i >= batch.end) return;
    FactorFront<T, kTinyFront, kWarp>(work, work.order[i], batch.awaits, shared.tiny[warp]);
  } else {
    FactorFront<T, kSmallFront, kThreads>(work, work.order[batch.begin + within], batch.awaits,
                                          shared.small);
  }
}

}  // namespace small_front

void SmallFronts::Add(int32_t begin, int32_t end, int32_t size, bool awaits) {
  const bool tiny = size <= kTinyFront;
  const int32_t each = tiny ? small_front::kTinyFronts : 1;
  batch_[count_++] = {blocks_, begin, end, tiny, awaits};
  blocks_ += (end - begin + each - 1) / each;
}

template <class T>
cudaError_t LaunchSmallFronts(const FrontTree& tree, const int32_t* order,
                              const SmallFronts& fronts, T* factor, T* contributions, int64_t* ipiv,
                              const MinPivots<T>& least, const FrontArrivals& arrivals,
                              cudaStream_t stream) {
  if (fronts.blocks() == 0) return cudaSuccess;
  const small_front::Work<T> work = {tree,          order, fronts, factor,
                                     contributions, ipiv,  least,  arrivals};
  return LaunchDependent(small_front::SmallFrontsKernel<T>,
                         dim3(static_cast<unsigned>(fronts.blocks())), small_front::kThreads, 0,
                         /*overlap=*/false, stream, work);
}

#define CROUT_INSTANTIATE(T)                                                                       \
  template cudaError_t LaunchSmallFronts(const FrontTree&, const int32_t*, const SmallFronts&, T*, \
                                         T*, int64_t*, const MinPivots<T>&, const FrontArrivals&,  \
                                         cudaStream_t);
CROUT_INSTANTIATE(float)
CROUT_INSTANTIATE(double)
CROUT_INSTANTIATE(Complex<float>)
#undef CROUT_INSTANTIATE

}  // namespace crout::cuda
