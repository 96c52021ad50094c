// SPDX-License-Identifier: Apache-2.0

// Solves with fronts of few rows, one warp per front, up and down.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_LIGHT_FRONT_CUH_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_LIGHT_FRONT_CUH_

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/pivot.cuh"
#include "kernels/cuda/multifrontal/child_in_lane.cuh"
#include "kernels/cuda/multifrontal/front_solve.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace light_front {

inline constexpr int kThreads = 128;
inline constexpr int kWarps = kThreads / kWarp;
// A warp handles kRhsPerWarp right-hand sides at a time if there would otherwise be more than
// kFewWarps warps, which is more than a GPU runs at a time.
inline constexpr int kRhsPerWarp = 4;
inline constexpr int64_t kFewWarps = 2048;
static_assert(kLightColumns <= kWarp);

template <class T, int kColumns>
struct Shared {
  T rows[kWarps][kLightFront][kColumns];
};

// The whole solve of one front, up or down, for kColumns right-hand sides from `first` on. Lane i
// holds row i of the front's own rows. kTransposed: op is not none.
template <class T, int kColumns, bool kTransposed>
class LightFront {
 public:
  using Rows = T[kLightFront][kColumns];

  __device__ LightFront(const FrontSolve<T>& solve, const Front& front, int first, Rows& rows)
      : solve_(solve),
        front_(front),
        panel_(front.Panel<const T>(solve.factor)),
        u12_(front.U12<const T>(solve.factor)),
        first_(first),
        count_(min(kColumns, solve.columns - first)),
        lane_(static_cast<int>(threadIdx.x) % kWarp),
        conjugate_(solve.op == Op::kConjugateTranspose),
        rows_(rows) {}

  __device__ void Up() const {
    Triangle<true> triangle;
    Load(triangle);
    T outer[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      outer[k] = k < front_.d1 && lane_ < front_.d2 ? Below(lane_, k) : T{0};
    }
    const int from = PermutedUnless(kTransposed);
    Child of_lane = ChildOf(front_.child_begin);
    Group group;
    Find(of_lane, 0, front_.child_begin, group);
    AwaitPreviousKernel();
    const MatrixView<T> b = solve_.Own(solve_.b, front_);
    for (int i = lane_; i < front_.size(); i += kWarp) {
      T values[kColumns];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        values[c] = i < front_.d1 && c < count_ ? b(i, first_ + c) : T{0};
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) rows_[i][c] = values[c];
    }
    __syncwarp();
    for (int32_t begin = front_.child_begin; begin < front_.child_end; begin += kWarp) {
      if (begin > front_.child_begin) of_lane = ChildOf(begin);
      for (int s = 0; s < kWarp && begin + s < front_.child_end; s += kChildren) {
        if (begin > front_.child_begin || s > 0) Find(of_lane, s, begin, group);
        Add(group);
      }
    }
    T own[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) own[c] = lane_ < front_.d1 ? rows_[from][c] : T{0};
    __syncwarp();
    Solve(triangle, own);
    Store(b, lane_, own);
    if (lane_ < front_.d1) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) rows_[lane_][c] = own[c];
    }
    __syncwarp();
    const MatrixView<T> left = solve_.Left(front_);
    for (int i = lane_; i < front_.d2; i += kWarp) {
      T rest[kColumns];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) rest[c] = rows_[front_.d1 + i][c];
      const auto take_off = [&](T a, int k) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) rest[c] = MinusProduct(rest[c], a, rows_[k][c]);
      };
      if (i == lane_) {
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          if (k < front_.d1) take_off(outer[k], k);
        }
      }
#pragma unroll 4
      for (int k = i == lane_ ? kAhead : 0; k < front_.d1; ++k) take_off(Below(i, k), k);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if (c < count_) left(i, first_ + c) = rest[c];
      }
    }
  }

  __device__ void Down() const {
    Triangle<false> triangle;
    Load(triangle);
    T outer[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      outer[i] = i < front_.d2 && lane_ < front_.d1 ? Beside(i) : T{0};
    }
    const int to = PermutedUnless(!kTransposed);
    const int32_t* const place = solve_.tree.place + front_.border;
    int32_t at = lane_ < front_.d2 ? place[lane_] : 0;
    const Front parent = front_.parent >= 0 ? solve_.tree.fronts[front_.parent] : front_;
    AwaitPreviousKernel();
    const MatrixView<T> b = solve_.Own(solve_.b, front_);
    T own[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      own[c] = lane_ < front_.d1 && c < count_ ? b(lane_, first_ + c) : T{0};
    }
    // `left` := the solution at the border. Its product with U12, or op(L21), is subtracted.
    const MatrixView<T> left = solve_.Left(front_);
    for (int begin = 0; begin < front_.d2; begin += kWarp) {
      const int count = min(kWarp, front_.d2 - begin);
      if (begin > 0 && lane_ < count) at = place[begin + lane_];
      if (lane_ < count) {
        const bool is_own = at < parent.d1;
        const T* const from = is_own ? &solve_.Own(solve_.x, parent)(at, first_)
                                     : &solve_.Left(parent)(at - parent.d1, first_);
        const int64_t ld = is_own ? parent.d1 : parent.d2;
        T values[kColumns];
#pragma unroll
        for (int c = 0; c < kColumns; ++c) values[c] = c < count_ ? from[c * ld] : T{0};
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          if (c < count_) left(begin + lane_, first_ + c) = values[c];
          rows_[lane_][c] = values[c];
        }
      }
      __syncwarp();
      const auto take_off = [&](T a, int i) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) own[c] = MinusProduct(own[c], a, rows_[i][c]);
      };
      if (lane_ < front_.d1) {
        if (begin == 0) {
#pragma unroll
          for (int i = 0; i < kAhead; ++i) {
            if (i < count) take_off(outer[i], i);
          }
        }
#pragma unroll 4
        for (int i = begin == 0 ? kAhead : 0; i < count; ++i) take_off(Beside(begin + i), i);
      }
      __syncwarp();
    }
    Solve(triangle, own);
    Store(solve_.Own(solve_.x, front_), to, own);
  }

 private:
  using Child = ChildInLane<T>;
  // Elements of the factor that a lane loads before the previous kernel has ended, from the
  // triangle and from the part beside it. For one right-hand side these are all elements of most
  // fronts. Several right-hand sides leave fewer registers, but then more warps run, which hide
  // each other's waits.
  static constexpr int kAhead = (kColumns == 1 ? 8 : 4) / (sizeof(T) > 8 ? 2 : 1);
  // Children whose contributions are loaded at once.
  static constexpr int kChildren = kColumns == 1 ? 4 : 2;

  // A triangle of op(F11): the lower one on the way up, the upper one on the way down. Holds the
  // elements of the lane's row in the columns that come first, and the division by its diagonal
  // element.
  template <bool kUp>
  struct Triangle {
    static constexpr bool kUnit = kUp != kTransposed;

    T column[kAhead];
    DivideBy<T> divide;
  };

  __device__ T ConjugateIfSet(T value) const {
    return kTransposed && conjugate_ ? Conjugate(value) : value;
  }
  // Element k of this lane's row of op(F11), which must exist.
  __device__ T Inner(int k) const {
    return kTransposed ? ConjugateIfSet(panel_(k, lane_)) : panel_(lane_, k);
  }
  // Below: element (i, k) of the part below op(F11). Beside: element i of the part beside op(F11)
  // in this lane's row.
  __device__ T Below(int i, int k) const {
    return kTransposed ? ConjugateIfSet(u12_(k, i)) : panel_(front_.d1 + i, k);
  }
  __device__ T Beside(int i) const {
    return kTransposed ? ConjugateIfSet(panel_(front_.d1 + i, lane_)) : u12_(lane_, i);
  }
  __device__ int PermutedUnless(bool plain) const {
    return lane_ < front_.d1 && !plain ? solve_.permutation[front_.first + lane_] : lane_;
  }

  // The s-th column in the order of elimination.
  template <bool kUp>
  __device__ int ColumnAt(int s) const {
    return kUp ? s : front_.d1 - 1 - s;
  }
  // The element of this lane's row in that column, if it lies off the diagonal in the triangle;
  // otherwise 0.
  template <bool kUp>
  __device__ T Entry(int s) const {
    const int k = ColumnAt<kUp>(s);
    const bool takes = (kUp ? lane_ > k : lane_ < k) && lane_ < front_.d1;
    return takes ? Inner(k) : T{0};
  }

  template <bool kUp>
  __device__ void Load(Triangle<kUp>& triangle) const {
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
      triangle.column[s] = s < front_.d1 ? Entry<kUp>(s) : T{0};
    }
    if constexpr (!Triangle<kUp>::kUnit) {
      triangle.divide = DivideBy<T>(lane_ < front_.d1 ? Inner(lane_) : T{1});
    }
  }

  template <bool kUp>
  __device__ void Solve(const Triangle<kUp>& triangle, T (&own)[kColumns]) const {
    const auto eliminate = [&](int s, T a) {
      const int k = ColumnAt<kUp>(s);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        T of_k = own[c];
        if constexpr (!Triangle<kUp>::kUnit) {
          of_k = triangle.divide(of_k);
          if (lane_ == k) own[c] = of_k;
        }
        own[c] = MinusProduct(own[c], a, Shuffle(of_k, k));
      }
    };
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
      if (s < front_.d1) eliminate(s, triangle.column[s]);
    }
#pragma unroll 4
    for (int s = kAhead; s < front_.d1; ++s) eliminate(s, Entry<kUp>(s));
  }

  __device__ void Store(const MatrixView<T>& to, int i, const T (&own)[kColumns]) const {
    if (lane_ >= front_.d1) return;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (c < count_) to(i, first_ + c) = own[c];
    }
  }

  // The front's child assigned to this lane, among those from `begin` on.
  __device__ Child ChildOf(int32_t begin) const {
    if (begin + lane_ >= front_.child_end) return {};
    const Front& child = solve_.tree.fronts[solve_.tree.child[begin + lane_]];
    return {&solve_.Left(child)(0, first_), solve_.tree.place + child.border, child.d2};
  }

  // Some children, and the place of this lane's row of each; -1 if there is none.
  struct Group {
    Child child[kChildren];
    int32_t at[kChildren];
  };
  __device__ void Find(const Child& of_lane, int first, int32_t begin, Group& group) const {
#pragma unroll
    for (int s = 0; s < kChildren; ++s) {
      group.child[s] = {};
      group.at[s] = -1;
      if (begin + first + s >= front_.child_end) continue;
      group.child[s] = of_lane.FromLane(first + s);
      if (lane_ < group.child[s].d2) group.at[s] = group.child[s].place[lane_];
    }
  }
  // Adds the children one after the other.
  __device__ void Add(const Group& group) const {
    T values[kChildren][kColumns];
#pragma unroll
    for (int s = 0; s < kChildren; ++s) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        values[s][c] = group.at[s] >= 0 && c < count_
                           ? group.child[s].from[lane_ + int64_t{c} * group.child[s].d2]
                           : T{0};
      }
    }
#pragma unroll
    for (int s = 0; s < kChildren; ++s) {
      const Child& child = group.child[s];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if (group.at[s] >= 0) rows_[group.at[s]][c] += values[s][c];
      }
      for (int i = lane_ + kWarp; i < child.d2; i += kWarp) {
        T more[kColumns];
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          more[c] = c < count_ ? child.from[i + int64_t{c} * child.d2] : T{0};
        }
        const int32_t at = child.place[i];
#pragma unroll
        for (int c = 0; c < kColumns; ++c) rows_[at][c] += more[c];
      }
      __syncwarp();
    }
  }

  const FrontSolve<T>& solve_;
  const Front& front_;
  const MatrixView<const T> panel_;
  const MatrixView<const T> u12_;
  const int first_;
  const int count_;
  const int lane_;
  const bool conjugate_;
  Rows& rows_;
};

template <class T, int kColumns, bool kUp, bool kTransposed>
__global__ void __launch_bounds__(kThreads)
    LightFrontKernel(FrontSolve<T> solve, const int32_t* order, int count) {
  ReleaseDependentKernel();
  auto& shared = SharedByBlock<Shared<T, kColumns>>();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t i = blockIdx.x * int64_t{kWarps} + warp;
  if (i >= count) {
    // Otherwise this kernel could end before the previous one, and the next one start too early.
    AwaitPreviousKernel();
    return;
  }
  const Front front = solve.tree.fronts[order[i]];
  const LightFront<T, kColumns, kTransposed> of_front(
      solve, front, static_cast<int>(blockIdx.y) * kColumns, shared.rows[warp]);
  if constexpr (kUp) {
    of_front.Up();
  } else {
    of_front.Down();
  }
}

// Each warp handles kColumns right-hand sides.
template <bool kUp, int kColumns, class T>
cudaError_t LaunchFor(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream) {
  const dim3 grid((static_cast<unsigned>(set.count) + kWarps - 1) / kWarps,
                  (static_cast<unsigned>(solve.columns) + kColumns - 1) / kColumns);
  return LaunchDependent(solve.op == Op::kNone ? LightFrontKernel<T, kColumns, kUp, false>
                                               : LightFrontKernel<T, kColumns, kUp, true>,
                         grid, kThreads, 0, solve.overlap, stream, solve, set.order, set.count);
}

template <bool kUp, class T>
cudaError_t Launch(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream) {
  if (set.count == 0) return cudaSuccess;
  return solve.columns == 1 || int64_t{set.count} * solve.columns <= kFewWarps
             ? LaunchFor<kUp, 1>(solve, set, stream)
             : LaunchFor<kUp, kRhsPerWarp>(solve, set, stream);
}

}  // namespace light_front

template <class T>
cudaError_t LaunchLightUp(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream) {
  return light_front::Launch<true>(solve, set, stream);
}

template <class T>
cudaError_t LaunchLightDown(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream) {
  return light_front::Launch<false>(solve, set, stream);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_LIGHT_FRONT_CUH_
