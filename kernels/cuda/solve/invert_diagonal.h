// SPDX-License-Identifier: Apache-2.0

// Inverses of the diagonal blocks of a factor, and their condition.
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

// The largest order of blocks for which the GPU has enough shared memory, up to kMaxInvertedOrder.
// The same for both real types, and for both complex types.
int64_t MaxInvertedOrder(DType dtype, const DeviceLimits& limits);
size_t InvertDiagonalBytes(int64_t order);  // bytes of dynamic shared memory

// Enqueues inverse[k : k + nb, 0 : nb] := the inverses of the lower and the upper triangle of lu[k
// : k + nb, k : k + nb], for k = 0, nb, 2 nb and so on. Both share one square in getrf's storage,
// like the block itself; the unit diagonal, L's or U's, is not stored. lu is n x n and inverse n x
// nb. In a last block of fewer rows, the columns beyond them are not modified. nb is at most
// MaxInvertedOrder for T, which is real or Complex. Each inverse is computed column by column by
// substitution in float64. Blocks of a singular factor become non-finite.
template <class T>
cudaError_t LaunchInvertDiagonal(const MatrixView<const T>& lu, UnitDiagonal unit_diagonal,
                                 const MatrixView<T>& inverse, const DeviceLimits& limits,
                                 cudaStream_t stream);

// Enqueues *report := the largest Skeel condition numbers | |T^-1| |T| |_inf of these blocks T and,
// for transposed solves, of T^T. Uses the moduli of complex elements. NaN if an inverse is not
// finite.
template <class T>
cudaError_t LaunchBlockConditions(const MatrixView<const T>& lu, UnitDiagonal unit_diagonal,
                                  const MatrixView<const T>& inverse, ReductionScratch* scratch,
                                  PreparationStats* report, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_SOLVE_INVERT_DIAGONAL_H_
