// SPDX-License-Identifier: Apache-2.0

// The steps of a solve with multifrontal factors.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/multifrontal/assembly.h"
#include "kernels/cuda/multifrontal/front.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// The largest number of right-hand sides that pass through the factor together.
template <class T>
inline constexpr int kMaxColumnsPerPass = sizeof(T) > 8 ? 8 : 16;
// Columns of a front that one step eliminates.
template <class T>
inline constexpr int kSolveTile = sizeof(T) > 8 ? 32 : 64;

// A solve of op(A) X = B with `columns` right-hand sides; in device memory. `b` and `x` are indexed
// by position, and `left` by border. On the way up, `left` holds the vector that each front passes
// to its parent. On the way down, it holds the solution at the front's border. Each front's part,
// with all columns, is contiguous.
template <class T>
struct FrontSolve {
  FrontTree tree;
  Op op = Op::kNone;
  int columns = 0;
  bool overlap = false;  // kernels may start while the previous ones end (dependent launch)
  const T* factor = nullptr;
  const int32_t* permutation = nullptr;  // PivotRecord::permutation
  T* b = nullptr;
  T* x = nullptr;
  T* left = nullptr;

  // constexpr, so that device code may call these functions.
  constexpr MatrixView<T> Own(T* vectors, const Front& front) const {
    return {vectors + int64_t{front.first} * columns, front.d1, columns, front.d1};
  }
  constexpr MatrixView<T> Left(const Front& front) const {
    return {left + front.border * columns, front.d2, columns, front.d2};
  }
};

// Copy between b by positions and a matrix by A's indices. Position k corresponds to row index[k].
// If `scale` is not null, the copy is multiplied by the scale of that row.
template <class T>
cudaError_t LaunchGather(const FrontSolve<T>& solve, int64_t n, const int32_t* index,
                         const double* scale, const MatrixView<const T>& rhs, cudaStream_t stream);
template <class T>
cudaError_t LaunchScatter(const FrontSolve<T>& solve, int64_t n, const int32_t* index,
                          const double* scale, const MatrixView<T>& solution, cudaStream_t stream);

// The way up, for the fronts of one level.
//
// LaunchStartUp processes all fronts of the level. It adds the children's `left` to b and to the
// front's own `left`, which starts at zero, and sets x to b. With `interchanges`, which op none
// requires, it interchanges the rows of x.
//
// LaunchStepUp processes the fronts that have this `step`; call it for each step of the largest
// front. It solves for the step's columns of L (with another op: of op(U)), from x to b, and
// subtracts them from x and `left`.
template <class T>
cudaError_t LaunchStartUp(const FrontSolve<T>& solve, const FrontSet& set, bool interchanges,
                          cudaStream_t stream);
// LaunchStartUp for fronts with many children, most of which have few rows; the results have the
// same bits. Launches one block per row, at most kMaxRowBlocks in all.
inline constexpr int32_t kManyChildren = 64;
inline constexpr int64_t kMaxRowBlocks = 4096;
template <class T>
cudaError_t LaunchStartUpOfMany(const FrontSolve<T>& solve, const FrontSet& set, bool interchanges,
                                cudaStream_t stream);
template <class T>
cudaError_t LaunchStepUp(const FrontSolve<T>& solve, const FrontSet& set, int step,
                         cudaStream_t stream);

// The way down, for the fronts of one level.
//
// LaunchStartDown sets `left` to the solution at the border's positions, from the parent's x or
// `left`, and subtracts its product with U12, or op(L21), from b.
//
// LaunchStepDown processes one step; call it for each step, with a front's last columns first. It
// solves for the step's columns, from b to x, and subtracts them from b. With an op other than
// none, it also undoes the interchanges of the rows of x.
template <class T>
cudaError_t LaunchStartDown(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream);
template <class T>
cudaError_t LaunchStepDown(const FrontSolve<T>& solve, const FrontSet& set, int step,
                           cudaStream_t stream);

// The start and all steps of fronts with few rows, up and down: at most kLightColumns rows of their
// own and kLightFront in all.
inline constexpr int32_t kLightColumns = 32;
inline constexpr int32_t kLightFront = 160;
template <class T>
cudaError_t LaunchLightUp(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream);
template <class T>
cudaError_t LaunchLightDown(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_H_
