// SPDX-License-Identifier: Apache-2.0

// The start of the way up for fronts with many children.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_MANY_CHILDREN_CUH_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_MANY_CHILDREN_CUH_

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/irr_matrix.h"
#include "kernels/cuda/multifrontal/binary_search.cuh"
#include "kernels/cuda/multifrontal/front_solve.h"
#include "kernels/cuda/ops/reduction.cuh"

namespace crout::cuda {
namespace many_children {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / kWarp;

template <class T>
struct Shared {
  T value[kMaxColumnsPerPass<T>][kThreads + 1];  // values of the children with the row, in order
  int count[kWarps];
  int to;  // the row of x that receives this row of b
};

// One block per row of a front; each thread searches for the row in one child.
template <class T>
__global__ void __launch_bounds__(kThreads)
    StartUpOfManyKernel(FrontSolve<T> solve, const int32_t* order, bool interchanges) {
  ReleaseDependentKernel();
  auto& shared = SharedByBlock<Shared<T>>();
  const Front front = solve.tree.fronts[order[blockIdx.x]];
  const auto row = static_cast<int>(blockIdx.y);
  const auto thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarp;
  AwaitPreviousKernel();
  if (row >= front.size()) return;
  const bool is_own = row < front.d1;
  for (int i = thread; i < front.d1; i += kThreads) {
    if ((interchanges ? solve.permutation[front.first + i] : i) == row) shared.to = i;
  }
  __syncthreads();
  // The sum of this thread's column, if it has one.
  T sum{0};
  if (thread < solve.columns && is_own) sum = solve.Own(solve.b, front)(row, thread);
  for (int32_t first = front.child_begin; first < front.child_end; first += kThreads) {
    Front child = {};
    int at = 0;
    bool has = false;
    if (first + thread < front.child_end) {
      child = solve.tree.fronts[solve.tree.child[first + thread]];
      const int32_t* const place = solve.tree.place + child.border;
      at = FirstNotLess(child.d2, row, [place](int i) { return place[i]; });
      has = at < child.d2 && place[at] == row;
    }
    const unsigned having = __ballot_sync(kAllLanes, has);
    if (thread % kWarp == 0) shared.count[warp] = __popc(having);
    __syncthreads();
    int total = 0;
    int slot = __popc(having & ((1U << thread % kWarp) - 1));
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) slot += shared.count[w];
      total += shared.count[w];
    }
    if (has) {
      for (int c = 0; c < solve.columns; ++c) shared.value[c][slot] = solve.Left(child)(at, c);
    }
    __syncthreads();
    if (thread < solve.columns) {
#pragma unroll 4
      for (int k = 0; k < total; ++k) sum += shared.value[thread][k];
    }
    __syncthreads();  // before the counts and values are overwritten
  }
  if (thread >= solve.columns) return;
  if (is_own) {
    solve.Own(solve.b, front)(row, thread) = sum;
    solve.Own(solve.x, front)(shared.to, thread) = sum;
  } else {
    solve.Left(front)(row - front.d1, thread) = sum;
  }
}

}  // namespace many_children

template <class T>
cudaError_t LaunchStartUpOfMany(const FrontSolve<T>& solve, const FrontSet& set, bool interchanges,
                                cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(set.count), BlocksOf(set.size, 1));
  return LaunchDependent(many_children::StartUpOfManyKernel<T>, grid, many_children::kThreads, 0,
                         solve.overlap, stream, solve, set.order, interchanges);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_MANY_CHILDREN_CUH_
