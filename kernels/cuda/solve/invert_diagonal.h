// Inverses of the diagonal blocks of a factor, and how far they can be relied on.
#ifndef CROUT_KERNELS_CUDA_SOLVE_INVERT_DIAGONAL_H_
#define CROUT_KERNELS_CUDA_SOLVE_INVERT_DIAGONAL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/device_limits.h"
#include "kernels/cuda/ops/reduction_scratch.h"
#include "kernels/execution_context.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"

namespace crout::cuda {

inline constexpr int64_t kMaxInvertedOrder = 1024;

// The largest order of blocks that the GPU has the shared memory for, up to kMaxInvertedOrder: the
// same for both real types and for both complex ones.
int64_t MostInvertedOrder(DType dtype, const DeviceLimits& limits);
size_t InvertDiagonalBytes(int64_t order);  // dynamic shared memory for it

// Enqueues inverse[k : k + nb, 0 : nb] := the inverses of the lower and the upper triangle of
// lu[k : k + nb, k : k + nb], for k = 0, nb, 2 nb, ..., both in one square in getrf's storage as
// the block itself: the unit diagonal, L's or U's, is not stored. lu: n x n. inverse: n x nb; in a
// last block of fewer rows, the columns past them stay as they are. nb: at most
// MostInvertedOrder for T, which is real or Complex. Column by column of each inverse by
// substitution, in float64; blocks of a singular factor come out non-finite.
template <class T>
cudaError_t LaunchInvertDiagonal(const MatrixView<const T>& lu, UnitDiagonal unit_diagonal,
                                 const MatrixView<T>& inverse, const DeviceLimits& limits,
                                 cudaStream_t stream);

// Enqueues *report := the largest Skeel condition numbers | |T^-1| |T| |_inf of those blocks T and,
// for transposed solves, of T^T, by the moduli of complex elements; NaN where an inverse is not
// finite.
template <class T>
cudaError_t LaunchBlockConditions(const MatrixView<const T>& lu, UnitDiagonal unit_diagonal,
                                  const MatrixView<const T>& inverse, ReductionScratch* scratch,
                                  PreparationStats* report, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_SOLVE_INVERT_DIAGONAL_H_
