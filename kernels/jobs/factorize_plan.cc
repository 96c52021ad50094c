// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/factorize.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/numerics/condition.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/sparse_view.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Adds A as received, which is also the kept matrix, and the factor, computed in its dense form.
absl::Status AddSparse(FactorizePlan& plan) {
  const int64_t n = plan.shape.rows;
  CROUT_ASSIGN_OR_RETURN(const size_t matrix, SparseBytes(n, *plan.nonzeros, plan.shape.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t lu, MatrixBytes(n, n, plan.options.factor_dtype));
  plan.upload = plan.buffers.Add("upload", BufferKind::kUpload, matrix);
  plan.matrix = plan.upload;
  plan.lu = plan.buffers.Add("lu", lu, {0, Lifetime::kInResult});
  if (plan.options.keep_matrix) plan.buffers.Keep(plan.matrix);
  return absl::OkStatus();
}

// Adds A as received, A as kept, and the factor: one to three buffers.
absl::Status AddDense(FactorizePlan& plan) {
  const FactorizeOptions& options = plan.options;
  BufferPlan& buffers = plan.buffers;
  const int64_t n = plan.shape.rows;
  CROUT_ASSIGN_OR_RETURN(const size_t matrix, MatrixBytes(n, n, plan.shape.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t lu, MatrixBytes(n, n, options.factor_dtype));
  const bool by_columns = plan.shape.layout == Layout::kColumnMajor;
  plan.upload = buffers.Add("upload", BufferKind::kUpload, matrix);
  plan.matrix = by_columns ? plan.upload : buffers.Add("matrix", matrix);
  if (options.factor_dtype != plan.shape.dtype || (options.keep_matrix && by_columns)) {
    plan.lu = buffers.Add("lu", lu);
  } else {
    plan.lu = options.keep_matrix ? plan.upload : plan.matrix;
  }
  buffers.Keep(plan.lu);
  if (options.keep_matrix) buffers.Keep(plan.matrix);
  return absl::OkStatus();
}

absl::Status AddRest(FactorizePlan& plan) {
  const FactorizeOptions& options = plan.options;
  BufferPlan& buffers = plan.buffers;
  const int64_t n = plan.shape.rows;
  const DType dtype = options.factor_dtype;
  const bool may_scale = options.equilibrate != EquilibrateMode::kOff;
  CROUT_ASSIGN_OR_RETURN(const size_t ipiv, MatrixBytes(n, 1, DType::kFloat64));
  CROUT_ASSIGN_OR_RETURN(const size_t scales, MatrixBytes(n, may_scale ? 2 : 0, DType::kFloat64));
  CROUT_ASSIGN_OR_RETURN(const size_t probe,
                         MatrixBytes(n, FactorProbeVectors(dtype), DType::kFloat64));
  CROUT_ASSIGN_OR_RETURN(const size_t workspace,
                         options.algorithm->WorkspaceBytes(dtype, n, options.parameters));
  CROUT_ASSIGN_OR_RETURN(const size_t report,
                         options.algorithm->ReportBytes(dtype, n, options.parameters));
  size_t prepared = 0;
  if (options.prepare != nullptr) {
    CROUT_ASSIGN_OR_RETURN(prepared, options.prepare->PreparedBytes(dtype, n));
  }
  constexpr Lifetime kKept = {0, Lifetime::kInResult};
  plan.ipiv = buffers.Add("ipiv", ipiv, kKept);
  plan.scales = buffers.Add("scales", scales, kKept);
  plan.prepared = buffers.Add("prepared", prepared, kKept);
  plan.probe = buffers.Add("probe", probe);
  plan.workspace = buffers.Add("workspace", workspace);
  if (options.condition_solver != nullptr) {
    // These buffers are allocated while the algorithm's workspace is still held.
    CROUT_ASSIGN_OR_RETURN(const size_t inverse,
                           FactorSolver::Bytes(*options.condition_solver, dtype, n, 1));
    CROUT_ASSIGN_OR_RETURN(const size_t vectors, RcondBytes(dtype, n));
    buffers.Add("condition estimate: solver", BufferKind::kPart, inverse);
    buffers.Add("condition estimate: vectors", BufferKind::kPart, BlockBytes(vectors));
  }
  buffers.Add("report", BufferKind::kReport, report);
  return absl::OkStatus();
}

}  // namespace

bool ArrivesSparse(const Device& device, int64_t n, int64_t nonzeros, DType dtype) {
  if (!device.info().has_sparse_ops) return false;
  const absl::StatusOr<size_t> sparse = SparseBytes(n, nonzeros, dtype);
  const absl::StatusOr<size_t> dense = MatrixBytes(n, n, dtype);
  return sparse.ok() && dense.ok() && *sparse <= *dense / 4;
}

absl::StatusOr<FactorizePlan> PlanFactorize(const FactorizeOptions& options, PackedMatrix shape,
                                            std::optional<int64_t> nonzeros) {
  if (options.algorithm == nullptr)
    return absl::InvalidArgumentError("the options name no algorithm");
  CROUT_RETURN_IF_ERROR(CheckSquare(shape));
  CROUT_RETURN_IF_ERROR(CheckSameField(shape.dtype, options.factor_dtype));
  const MethodTraits& traits = options.algorithm->traits();
  CROUT_RETURN_IF_ERROR(CheckParameters(traits, options.parameters));
  for (const TriangularSolver* solver : {options.condition_solver, options.prepare}) {
    if (solver == nullptr) continue;
    CROUT_RETURN_IF_ERROR(CheckSupports(*solver, traits.unit_diagonal, traits.name));
  }
  FactorizePlan plan;
  plan.options = options;
  plan.shape = shape;
  plan.nonzeros = nonzeros;
  CROUT_RETURN_IF_ERROR(nonzeros ? AddSparse(plan) : AddDense(plan));
  CROUT_RETURN_IF_ERROR(AddRest(plan));
  CROUT_ASSIGN_OR_RETURN(plan.bytes, plan.buffers.Sum());
  plan.seconds = options.algorithm->PredictSeconds(options.factor_dtype, shape.rows);
  return plan;
}

}  // namespace crout
