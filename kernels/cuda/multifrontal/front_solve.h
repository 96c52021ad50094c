// The steps of a solve with multifrontal factors.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/multifrontal/assembly.h"
#include "kernels/cuda/multifrontal/front.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Right-hand sides that go through the factor together, at most.
template <class T>
inline constexpr int kMostTogether = sizeof(T) > 8 ? 8 : 16;
// Columns of a front that a step eliminates.
template <class T>
inline constexpr int kSolveTile = sizeof(T) > 8 ? 32 : 64;

// A solve of op(A) X = B with `columns` right-hand sides; in device memory. `b` and `x` are by
// positions, `left` by borders: what every front leaves to its parent on the way up, and has at its
// border on the way down. What a front has of them, all columns of it, is one piece.
template <class T>
struct FrontSolve {
  FrontTree tree;
  Op op = Op::kNone;
  int columns = 0;
  bool overlap = false;  // kernels may start while the ones before them end (dependent launch)
  const T* factor = nullptr;
  const int32_t* permutation = nullptr;  // PivotRecord::permutation
  T* b = nullptr;
  T* x = nullptr;
  T* left = nullptr;

  // constexpr, so that device code may call them.
  constexpr MatrixView<T> Own(T* vectors, const Front& front) const {
    return {vectors + int64_t{front.first} * columns, front.d1, columns, front.d1};
  }
  constexpr MatrixView<T> Left(const Front& front) const {
    return {left + front.border * columns, front.d2, columns, front.d2};
  }
};

// Between b by positions and a matrix by A's indices: row index[k] of it, times scale of that row
// where there is a scale, at position k.
template <class T>
cudaError_t LaunchGather(const FrontSolve<T>& solve, int64_t n, const int32_t* index,
                         const double* scale, const MatrixView<const T>& rhs, cudaStream_t stream);
template <class T>
cudaError_t LaunchScatter(const FrontSolve<T>& solve, int64_t n, const int32_t* index,
                          const double* scale, const MatrixView<T>& solution, cudaStream_t stream);

// On the way up, the fronts of a level. First, for all of them: b gets what their children left,
// `left` starts with the rest of it, and x is b, its rows interchanged where that is asked for, as
// it is with op none. Then for each
// `step` that the largest has, those that have it: its columns of L, of op(U) with another op, are
// solved for, from x to b, and taken off x and `left`.
template <class T>
cudaError_t LaunchStartUp(const FrontSolve<T>& solve, const FrontSet& set, bool interchanges,
                          cudaStream_t stream);
// The first for fronts with many children, most of them of few rows: the same to the bit. What it
// launches is a block for each row; at most kMostRowsOfMany in all.
inline constexpr int32_t kManyChildren = 64;
inline constexpr int64_t kMostRowsOfMany = 4096;
template <class T>
cudaError_t LaunchStartUpOfMany(const FrontSolve<T>& solve, const FrontSet& set, bool interchanges,
                                cudaStream_t stream);
template <class T>
cudaError_t LaunchStepUp(const FrontSolve<T>& solve, const FrontSet& set, int step,
                         cudaStream_t stream);

// On the way down. First `left` becomes the solution at the border's positions, the parent's x or
// its left, and its product with U12, or op(L21), is taken off b. Then for each step, of a front
// the last columns first, its columns are solved for, from b to x, and taken off b; with another op
// than none the rows of x are interchanged back on the way.
template <class T>
cudaError_t LaunchStartDown(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream);
template <class T>
cudaError_t LaunchStepDown(const FrontSolve<T>& solve, const FrontSet& set, int step,
                           cudaStream_t stream);

// Both start and steps of fronts of few rows, at most kLightColumns of their own and kLightFront in
// all, up and down.
inline constexpr int32_t kLightColumns = 32;
inline constexpr int32_t kLightFront = 160;
template <class T>
cudaError_t LaunchLightUp(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream);
template <class T>
cudaError_t LaunchLightDown(const FrontSolve<T>& solve, const FrontSet& set, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_SOLVE_H_
