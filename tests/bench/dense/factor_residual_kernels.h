// SPDX-License-Identifier: Apache-2.0

// Device code of FactorRatioOnDevice, for double and cuda::Complex<double>.
#ifndef CROUT_TESTS_BENCH_DENSE_FACTOR_RESIDUAL_KERNELS_H_
#define CROUT_TESTS_BENCH_DENSE_FACTOR_RESIDUAL_KERNELS_H_

#include <cuda_runtime_api.h>

#include "kernels/matrix.h"

namespace crout {

// Enqueues a split of `lu` into its triangles: `u` becomes U and `lu` becomes L, both n x n with
// their diagonals and zeros in the other triangle.
template <class T>
cudaError_t LaunchSplit(const MatrixView<T>& lu, const MatrixView<T>& u, bool unit_in_u,
                        cudaStream_t stream);

// Enqueues sums[j] := sum over i of |a_ij|, for each column j.
template <class T>
cudaError_t LaunchColumnSums(const MatrixView<T>& a, double* sums, cudaStream_t stream);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_DENSE_FACTOR_RESIDUAL_KERNELS_H_
