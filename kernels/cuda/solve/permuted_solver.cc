// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/solve/solvers.h"

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/permute_rows.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout::cuda {
namespace {

// Elements of the permutation, rounded up to an even number so that the following copy, with
// elements of up to 16 bytes, is aligned.
int64_t PermutationLength(int64_t n) { return n + n % 2; }

// Bytes of workspace for n x nrhs right-hand sides: a copy and the permutation.
absl::StatusOr<size_t> PermuteRhsBytes(DType dtype, int64_t n, int64_t nrhs) {
  CROUT_ASSIGN_OR_RETURN(const size_t copy, MatrixBytes(n, nrhs, dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t permutation,
                         MatrixBytes(PermutationLength(n), 1, DType::kFloat64));
  return ByteSum().Add(copy).Add(permutation).total();
}

// Enqueues b := P b or, if `inverse`, b := P^T b, where PA = LU.
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

}  // namespace

absl::StatusOr<size_t> PermutedSolver::WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const {
  return PermuteRhsBytes(dtype, n, nrhs);
}

absl::Status PermutedSolver::Enqueue(Context& context, const FactorView& factor, Op op,
                                     double tolerance, const AnyMatrix& b,
                                     std::span<std::byte> workspace) const {
  const bool plain = op == Op::kNone;
  if (plain) CROUT_RETURN_IF_ERROR(PermuteRhs(context, factor, false, b, workspace));
  CROUT_RETURN_IF_ERROR(SolveTriangle(context, factor, plain, op, tolerance, b));
  CROUT_RETURN_IF_ERROR(SolveTriangle(context, factor, !plain, op, tolerance, b));
  return plain ? absl::OkStatus() : PermuteRhs(context, factor, true, b, workspace);
}

absl::Status PermutedSolver::Solve(ExecutionContext& context, const FactorView& factor, Op op,
                                   double tolerance, const AnyMatrix& b,
                                   std::span<std::byte> workspace) const {
  if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
  Context& cuda = Context::From(context);
  CROUT_ASSIGN_OR_RETURN(const size_t needed, WorkspaceBytes(b.dtype, b.rows, b.cols));
  if (workspace.size() < needed) {
    return absl::InternalError(absl::StrCat(ToAbsl(name()), " needs ", needed,
                                            " bytes of workspace, got ", workspace.size()));
  }
  CROUT_RETURN_IF_ERROR(cuda.core().MakeCurrent());
  return cuda.core().Observe(Enqueue(cuda, factor, op, tolerance, b, workspace));
}

}  // namespace crout::cuda
