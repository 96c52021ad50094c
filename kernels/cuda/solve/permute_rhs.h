// SPDX-License-Identifier: Apache-2.0

// Row interchanges of a factorization, applied to right-hand sides in place.
#ifndef CROUT_KERNELS_CUDA_SOLVE_PERMUTE_RHS_H_
#define CROUT_KERNELS_CUDA_SOLVE_PERMUTE_RHS_H_

#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/lu_parameters.h"

namespace crout::cuda {

// Bytes of workspace for n x nrhs right-hand sides: a copy and the permutation.
absl::StatusOr<size_t> PermuteRhsBytes(DType dtype, int64_t n, int64_t nrhs);

// Enqueues b := P b or, if `inverse`, b := P^T b, where PA = LU.
absl::Status PermuteRhs(Context& context, const FactorView& factor, bool inverse,
                        const AnyMatrix& b, std::span<std::byte> workspace);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_SOLVE_PERMUTE_RHS_H_
