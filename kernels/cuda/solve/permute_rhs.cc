// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/solve/permute_rhs.h"

#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/permute_rows.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {

namespace {

// Elements of the permutation, rounded up to an even number so that the following copy, with
// elements of up to 16 bytes, is aligned.
int64_t PermutationLength(int64_t n) { return n + n % 2; }

}  // namespace

absl::StatusOr<size_t> PermuteRhsBytes(DType dtype, int64_t n, int64_t nrhs) {
  CROUT_ASSIGN_OR_RETURN(const size_t copy, MatrixBytes(n, nrhs, dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t permutation,
                         MatrixBytes(PermutationLength(n), 1, DType::kFloat64));
  return ByteSum().Add(copy).Add(permutation).total();
}

absl::Status PermuteRhs(Context& context, const FactorView& factor, bool inverse,
                        const AnyMatrix& b, std::span<std::byte> workspace) {
  auto* permutation = reinterpret_cast<int64_t*>(workspace.data());
  const AnyMatrix copy = {workspace.data() + PermutationLength(b.rows) * sizeof(int64_t), b.dtype,
                          b.rows, b.cols, b.rows};
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchTracePermutation(factor.ipiv, b.rows, permutation, context.stream()));
  CROUT_RETURN_IF_CUDA_ERROR(LaunchCopyScaled(b, nullptr, nullptr, copy, context.stream()));
  CROUT_RETURN_IF_CUDA_ERROR(LaunchPermuteRows(copy, permutation, inverse, b, context.stream()));
  return absl::OkStatus();
}

}  // namespace crout::cuda
