// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/solve/permuted_solver.h"

#include "absl/strings/str_cat.h"
#include "kernels/cuda/solve/permute_rhs.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout::cuda {

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
