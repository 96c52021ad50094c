#include "kernels/jobs/factorize_plan.h"

#include <algorithm>

#include "kernels/numerics/condition.h"
#include "kernels/numerics/factor_solver.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

absl::StatusOr<size_t> WorkspaceBytes(const FactorizeOptions& options, int64_t n) {
  CROUT_ASSIGN_OR_RETURN(const size_t factor, options.algorithm->WorkspaceBytes(
                                                  options.factor_dtype, n, options.parameters));
  if (options.condition_solver == nullptr) return BlockBytes(factor);
  CROUT_ASSIGN_OR_RETURN(const size_t inverse, FactorSolver::Bytes(*options.condition_solver,
                                                                   options.factor_dtype, n, 1));
  CROUT_ASSIGN_OR_RETURN(const size_t condition, RcondBytes(n));
  // The estimate's buffers come beside the algorithm's workspace, which is not given back between.
  return ByteSum().AddBuffer(factor).Add(inverse).AddBuffer(condition).total();
}

absl::Status AddUp(const FactorizeOptions& options, size_t matrix_bytes, size_t lu_bytes,
                   FactorizePlan& plan) {
  ByteSum kept;
  kept.AddBuffer(lu_bytes).AddBuffer(plan.ipiv).AddBuffer(plan.scales);
  kept.AddBuffer(options.keep_matrix ? matrix_bytes : 0).AddBuffer(plan.prepared);
  CROUT_ASSIGN_OR_RETURN(plan.bytes.kept, kept.total());
  ByteSum peak;
  peak.AddBuffer(plan.upload).AddBuffer(plan.matrix).AddBuffer(plan.lu).AddBuffer(plan.ipiv);
  peak.AddBuffer(plan.scales).AddBuffer(plan.prepared).AddBuffer(plan.probe).Add(plan.workspace);
  CROUT_ASSIGN_OR_RETURN(plan.bytes.peak, peak.total());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FactorizePlan> PlanFactorize(const FactorizeOptions& options, DType matrix_dtype,
                                            Layout layout, int64_t n) {
  if (options.algorithm == nullptr) return absl::InvalidArgumentError("no algorithm is given");
  FactorizePlan plan;
  CROUT_ASSIGN_OR_RETURN(plan.upload, MatrixBytes(n, n, matrix_dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t lu_bytes, MatrixBytes(n, n, options.factor_dtype));
  CROUT_ASSIGN_OR_RETURN(plan.ipiv, MatrixBytes(n, 1, DType::kFloat64));
  const bool may_scale = options.equilibrate != EquilibrateMode::kOff;
  CROUT_ASSIGN_OR_RETURN(plan.scales, MatrixBytes(n, may_scale ? 2 : 0, DType::kFloat64));
  CROUT_ASSIGN_OR_RETURN(plan.probe, MatrixBytes(n, kFactorProbeVectors, DType::kFloat64));
  CROUT_ASSIGN_OR_RETURN(plan.workspace, WorkspaceBytes(options, n));
  if (options.prepare != nullptr) {
    CROUT_ASSIGN_OR_RETURN(plan.prepared, options.prepare->PreparedBytes(options.factor_dtype, n));
  }

  const bool same_type = options.factor_dtype == matrix_dtype;
  plan.upload_is_matrix = layout == Layout::kColumnMajor;
  plan.lu_is_matrix = same_type && !options.keep_matrix;
  plan.lu_is_upload = same_type && options.keep_matrix && !plan.upload_is_matrix;
  plan.matrix = plan.upload_is_matrix ? 0 : plan.upload;
  plan.lu = plan.lu_is_matrix || plan.lu_is_upload ? 0 : lu_bytes;
  CROUT_RETURN_IF_ERROR(AddUp(options, plan.upload, lu_bytes, plan));
  CROUT_ASSIGN_OR_RETURN(plan.bytes.report, options.algorithm->ReportBytes(options.factor_dtype, n,
                                                                           options.parameters));
  return plan;
}

absl::StatusOr<JobBytes> FactorizeBytes(const FactorizeOptions& options, DType matrix_dtype,
                                        int64_t n) {
  // The layout is not known yet: the worse of the two.
  CROUT_ASSIGN_OR_RETURN(const FactorizePlan row_major,
                         PlanFactorize(options, matrix_dtype, Layout::kRowMajor, n));
  CROUT_ASSIGN_OR_RETURN(const FactorizePlan column_major,
                         PlanFactorize(options, matrix_dtype, Layout::kColumnMajor, n));
  return JobBytes{row_major.bytes.kept, std::max(row_major.bytes.peak, column_major.bytes.peak),
                  row_major.bytes.report};
}

}  // namespace crout
