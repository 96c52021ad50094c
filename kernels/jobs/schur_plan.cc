#include "kernels/jobs/schur_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/factorize_plan.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

absl::Status AddUp(const JobBytes& factor, SchurPlan& plan) {
  // While A11 is factored, then while its factors are used.
  ByteSum factoring;
  factoring.AddBuffer(plan.upload).AddBuffer(plan.matrix).Add(factor.peak);
  ByteSum using_it;
  using_it.AddBuffer(plan.upload).AddBuffer(plan.matrix).Add(factor.kept);
  using_it.AddBuffer(plan.work).AddBuffer(plan.x);
  CROUT_ASSIGN_OR_RETURN(const size_t first, factoring.total());
  CROUT_ASSIGN_OR_RETURN(
      const size_t second,
      using_it.AddBuffer(plan.workspace).AddBuffer(plan.packed).AddBuffer(plan.probe).total());
  plan.bytes = {factor.kept, std::max(first, second), factor.report};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SchurPlan> PlanSchur(const SchurOptions& options, DType matrix_dtype, Layout layout,
                                    int64_t n) {
  if (options.solver == nullptr) return absl::InvalidArgumentError("no solver is given");
  SchurPlan plan;
  CROUT_ASSIGN_OR_RETURN(plan.upload, MatrixBytes(n, n, matrix_dtype));
  const int64_t k = options.leading;
  if (k < 0 || k > n) {
    return absl::InvalidArgumentError(
        absl::StrCat("the leading block is of order ", k, ", the matrix of order ", n));
  }
  CROUT_ASSIGN_OR_RETURN(const FactorizePlan factor,
                         PlanFactorize(options.factor, matrix_dtype, Layout::kColumnMajor, k));
  const DType factor_dtype = options.factor.factor_dtype;
  CROUT_ASSIGN_OR_RETURN(plan.leading, MatrixBytes(k, k, matrix_dtype));
  CROUT_ASSIGN_OR_RETURN(plan.work, MatrixBytes(k, n - k, factor_dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t x, MatrixBytes(k, n - k, matrix_dtype));
  CROUT_ASSIGN_OR_RETURN(plan.workspace, options.solver->WorkspaceBytes(factor_dtype, k, n - k));
  CROUT_ASSIGN_OR_RETURN(plan.probe, MatrixBytes(n, kSchurProbeVectors, DType::kFloat64));
  plan.x = factor_dtype == matrix_dtype ? 0 : x;
  if (layout == Layout::kRowMajor) {
    plan.matrix = plan.upload;
  } else {
    CROUT_ASSIGN_OR_RETURN(plan.packed, MatrixBytes(n - k, n - k, matrix_dtype));
  }
  CROUT_RETURN_IF_ERROR(AddUp(factor.bytes, plan));
  return plan;
}

absl::StatusOr<JobBytes> SchurBytes(const SchurOptions& options, DType matrix_dtype, int64_t n) {
  // The layout is not known yet: the worse of the two.
  CROUT_ASSIGN_OR_RETURN(const SchurPlan row_major,
                         PlanSchur(options, matrix_dtype, Layout::kRowMajor, n));
  CROUT_ASSIGN_OR_RETURN(const SchurPlan column_major,
                         PlanSchur(options, matrix_dtype, Layout::kColumnMajor, n));
  return JobBytes{row_major.bytes.kept, std::max(row_major.bytes.peak, column_major.bytes.peak),
                  row_major.bytes.report};
}

PackedMatrix SchurShape(const SchurOptions& options, DType matrix_dtype, int64_t n) {
  const int64_t order = n - options.leading;
  return {nullptr, matrix_dtype, options.layout, order, order};
}

}  // namespace crout
