// SPDX-License-Identifier: Apache-2.0

// The kernels of solves with multifrontal factors; each front_solve_*.cu instantiates them for one
// element type.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_KERNELS_CUH_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_KERNELS_CUH_

#include <type_traits>

#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/multifrontal/binary_search.cuh"
#include "kernels/cuda/multifrontal/front_solve.h"
#include "kernels/cuda/multifrontal/front_solve_start.cuh"
#include "kernels/cuda/multifrontal/front_solve_step.cuh"

namespace crout::cuda {
namespace front_solve {

inline unsigned BlocksFor(int64_t count, int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

template <class T>
__device__ T Times(T x, double scale) {
  return static_cast<T>(ToFloat64(x) * scale);
}

// to(i_to, j) := from(i_from, j) for all columns, times *scale if it is not null. Does kAtOnce
// loads before their stores, because a load behind a store would wait for it.
inline constexpr int kAtOnce = 4;
template <class T>
__device__ void CopyRow(const MatrixView<const T>& from, int64_t i_from, const double* scale,
                        const MatrixView<T>& to, int64_t i_to, int columns) {
  for (int first = 0; first < columns; first += kAtOnce) {
    T values[kAtOnce];
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      if (first + s < columns) values[s] = from(i_from, first + s);
    }
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      if (first + s >= columns) break;
      to(i_to, first + s) = scale == nullptr ? values[s] : Times(values[s], *scale);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    GatherKernel(FrontSolve<T> solve, int64_t n, const int32_t* index, const double* scale,
                 MatrixView<const T> rhs) {
  const int64_t k = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (k >= n) return;
  const int32_t i = index[k];
  const Front& front = solve.tree.fronts[FrontOf(solve.tree, k)];
  CopyRow<T>(rhs, i, scale == nullptr ? nullptr : scale + i, solve.Own(solve.b, front),
             k - front.first, solve.columns);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    ScatterKernel(FrontSolve<T> solve, int64_t n, const int32_t* index, const double* scale,
                  MatrixView<T> solution) {
  const int64_t k = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (k >= n) return;
  const int32_t i = index[k];
  const Front& front = solve.tree.fronts[FrontOf(solve.tree, k)];
  const MatrixView<T> x = solve.Own(solve.x, front);
  CopyRow<T>({x.data, x.rows, x.cols, x.ld}, k - front.first,
             scale == nullptr ? nullptr : scale + i, solution, i, solve.columns);
}

// Calls f(c), with c the integral constant of the number of columns for which a kernel is compiled.
template <class T, class F>
cudaError_t ForColumns(int columns, F f) {
  if (columns == 1) return f(std::integral_constant<int, 1>());
  return f(std::integral_constant<int, kMaxColumnsPerPass<T>>());
}

template <bool kUp, class T>
cudaError_t LaunchStep(const FrontSolve<T>& solve, const FrontSet& set, int step,
                       cudaStream_t stream) {
  if (set.count == 0) return cudaSuccess;
  const int64_t done = int64_t{step} * kSolveTile<T>;
  const int64_t lines = (kUp ? set.size : set.d1) - done;
  const dim3 grid(static_cast<unsigned>(set.count),
                  BlocksOf(lines > 0 ? static_cast<int>(lines) : 1, kStepLines));
  return ForColumns<T>(solve.columns, [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    return LaunchDependent(solve.op == Op::kNone ? StepKernel<T, kColumns, kUp, false>
                                                 : StepKernel<T, kColumns, kUp, true>,
                           grid, kStepThreads, 0, solve.overlap, stream, solve, set.order, step);
  });
}

}  // namespace front_solve

template <class T>
cudaError_t LaunchGather(const FrontSolve<T>& solve, int64_t n, const int32_t* index,
                         const double* scale, const MatrixView<const T>& rhs, cudaStream_t stream) {
  return LaunchDependent(front_solve::GatherKernel<T>,
                         front_solve::BlocksFor(n, front_solve::kThreads), front_solve::kThreads, 0,
                         /*overlap=*/false, stream, solve, n, index, scale, rhs);
}

template <class T>
cudaError_t LaunchScatter(const FrontSolve<T>& solve, int64_t n, const int32_t* index,
                          const double* scale, const MatrixView<T>& solution, cudaStream_t stream) {
  return LaunchDependent(front_solve::ScatterKernel<T>,
                         front_solve::BlocksFor(n, front_solve::kThreads), front_solve::kThreads, 0,
                         /*overlap=*/false, stream, solve, n, index, scale, solution);
}

template <class T>
cudaError_t LaunchStartUp(const FrontSolve<T>& solve, const FrontSet& set, bool interchanges,
                          cudaStream_t stream) {
  if (set.count == 0) return cudaSuccess;
  int threads = kWarp;
  while (threads < set.size && threads < front_solve::kMaxUpThreads) threads *= 2;
  const bool one = solve.columns == 1;
  const dim3 grid(static_cast<unsigned>(set.count),
                  one ? 1 : front_solve::BlocksFor(solve.columns, front_solve::kColumnsPerBlock));
  return LaunchDependent(one ? front_solve::StartUpKernel<T, 1>
                             : front_solve::StartUpKernel<T, front_solve::kColumnsPerBlock>,
                         grid, threads, 0, solve.overlap, stream, solve, set.order, interchanges);
}

template <class T>
cudaError_t LaunchStepUp(const FrontSolve<T>& solve, const FrontSet& set, int step,
                         cudaStream_t stream) {
  return front_solve::LaunchStep<true>(solve, set, step, stream);
}

template <class T>
cudaError_t LaunchStartDown(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream) {
  if (set.count == 0 || set.d2 == 0) return cudaSuccess;
  return front_solve::ForColumns<T>(solve.columns, [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    const bool plain = solve.op == Op::kNone;
    const dim3 grid(static_cast<unsigned>(set.count),
                    BlocksOf(set.d1, plain ? front_solve::kDownRows : front_solve::kDownColumns));
    return LaunchDependent(plain ? front_solve::StartDownKernel<T, kColumns>
                                 : front_solve::StartDownTransposedKernel<T, kColumns>,
                           grid, front_solve::kThreads, 0, solve.overlap, stream, solve, set.order);
  });
}

template <class T>
cudaError_t LaunchStepDown(const FrontSolve<T>& solve, const FrontSet& set, int step,
                           cudaStream_t stream) {
  return front_solve::LaunchStep<false>(solve, set, step, stream);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_KERNELS_CUH_
