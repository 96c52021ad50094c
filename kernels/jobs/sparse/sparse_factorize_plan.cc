// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/sparse/sparse_factorize.h"
#include "kernels/jobs/sparse/sparse_retries.h"
#include "kernels/numerics/condition.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

// Plans the buffers of a job whose method has `workspace` bytes beside the factor.
absl::Status PlanBuffers(size_t workspace, SparseFactorizePlan& plan) {
  const SparseFactorizeOptions& options = plan.options;
  const SparseMethod& method = options.method;
  const Analysis& known = *plan.analysis;
  const DType dtype = options.factor_dtype;
  plan.buffers = {};
  BufferPlan& buffers = plan.buffers;
  CROUT_ASSIGN_OR_RETURN(const size_t matrix,
                         SparseBytes(known.n, known.nonzeros, plan.matrix_dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t factor, method.lu->FactorBytes(known, dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t vectors,
                         MatrixBytes(known.n, kSparseProbeVectors, WideOf(dtype)));
  CROUT_ASSIGN_OR_RETURN(const size_t solver,
                         FactorSolver::Bytes(*method.solver, dtype, known.n, 1, nullptr, &known));
  plan.matrix = buffers.Add("upload", BufferKind::kUpload, matrix);
  if (options.keep_matrix) buffers.Keep(plan.matrix);
  plan.factor =
      buffers.Add("lu", std::max(factor, options.min_factor_bytes), {0, Lifetime::kInResult});
  plan.workspace = buffers.Add("workspace", workspace);
  plan.vectors = buffers.Add("probe", vectors);
  buffers.Add("probe: solver", BufferKind::kPart, solver);
  buffers.Add("probe (host copy)", BufferKind::kReport, vectors);
  if (options.condition) {
    CROUT_ASSIGN_OR_RETURN(const size_t rcond, RcondBytes(dtype, known.n));
    buffers.Add("condition estimate: vectors", BufferKind::kPart, BlockBytes(rcond));
  }
  CROUT_ASSIGN_OR_RETURN(plan.bytes, buffers.Sum());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SparseFactorizePlan> PlanSparseFactorize(const SparseFactorizeOptions& options,
                                                        std::shared_ptr<const Analysis> analysis,
                                                        bool analysis_reused, DType matrix_dtype,
                                                        const CachedWorkspace& known) {
  CROUT_RETURN_IF_ERROR(CheckSameField(matrix_dtype, options.factor_dtype));
  const DType dtype = options.factor_dtype;
  const SparseMethod& method = options.method;
  if (!method.lu->SupportsSparse(dtype)) {
    return absl::UnimplementedError(absl::StrCat("algorithm '", ToAbsl(method.lu->name()),
                                                 "' is not available in ", ToAbsl(NameOf(dtype)),
                                                 ". Choose another type or algorithm"));
  }
  if (options.determinant && !method.lu->SupportsDeterminants()) {
    return absl::UnimplementedError(
        absl::StrCat("algorithm '", ToAbsl(method.lu->name()),
                     "' computes no determinant. Choose another algorithm"));
  }
  SparseFactorizePlan plan;
  plan.options = options;
  plan.analysis = std::move(analysis);
  plan.analysis_reused = analysis_reused;
  plan.matrix_dtype = matrix_dtype;
  plan.seconds = method.lu->PredictSeconds(*plan.analysis, dtype);
  const bool is_known = known.lu == method.lu && known.dtype == dtype;
  size_t workspace = known.bytes;
  if (!is_known) {
    CROUT_ASSIGN_OR_RETURN(
        workspace,
        method.lu->WorkspaceBytes(*plan.analysis, dtype, std::numeric_limits<size_t>::max()));
  }
  CROUT_RETURN_IF_ERROR(PlanBuffers(workspace, plan));
  const size_t taken = plan.bytes.peak + (options.replaces_factor ? plan.bytes.kept : 0);
  if (taken <= options.max_bytes) return plan;
  const size_t beyond = taken - options.max_bytes;
  CROUT_ASSIGN_OR_RETURN(
      workspace,
      method.lu->WorkspaceBytes(*plan.analysis, dtype, workspace - std::min(workspace, beyond)));
  CROUT_RETURN_IF_ERROR(PlanBuffers(workspace, plan));
  return plan;
}

}  // namespace crout
