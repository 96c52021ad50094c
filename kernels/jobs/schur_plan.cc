// SPDX-License-Identifier: Apache-2.0

#include "absl/strings/str_cat.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/jobs/schur.h"
#include "kernels/numerics/schur_probe.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Phases: factoring A11, then using its factors.
constexpr int kFactoring = 0;
constexpr int kUsing = 1;

absl::Status AddBuffers(SchurPlan& plan) {
  const PackedMatrix& shape = plan.shape;
  BufferPlan& buffers = plan.buffers;
  const int64_t n = shape.rows;
  const int64_t k = plan.options.leading;
  const DType factor_dtype = plan.options.factor.factor_dtype;
  CROUT_ASSIGN_OR_RETURN(const size_t matrix, MatrixBytes(n, n, shape.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t work, MatrixBytes(k, n - k, factor_dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t x, MatrixBytes(k, n - k, shape.dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t workspace,
                         plan.options.solver->WorkspaceBytes(factor_dtype, k, n - k));
  CROUT_ASSIGN_OR_RETURN(const size_t probe,
                         MatrixBytes(n, kSchurProbeVectors, WideOf(shape.dtype)));
  constexpr Lifetime kBoth = {kFactoring, kUsing};
  constexpr Lifetime kLater = {kUsing, kUsing};
  const bool by_rows = shape.layout == Layout::kRowMajor;
  plan.upload = buffers.Add("upload", BufferKind::kUpload, matrix, kBoth);
  plan.matrix = by_rows ? buffers.Add("matrix", matrix, kBoth) : plan.upload;
  buffers.AddJob(plan.factor.buffers, kFactoring);
  plan.work = buffers.Add("right block", work, kLater);
  plan.x = factor_dtype == shape.dtype ? plan.work : buffers.Add("solution", x, kLater);
  plan.workspace = buffers.Add("workspace", workspace, kLater);
  plan.probe = buffers.Add("probe", probe, kLater);
  plan.packed = by_rows ? plan.upload : buffers.Add("complement", plan.complement.bytes(), kLater);
  buffers.Add("reply", BufferKind::kReply, plan.complement.bytes());
  return absl::OkStatus();
}

double PredictSeconds(const SchurPlan& plan) {
  const int64_t k = plan.options.leading;
  const int64_t order = plan.complement.rows;
  if (k == 0 || order == 0) return plan.factor.seconds;
  // The product takes order / k times the operations of the solve.
  const double solve =
      plan.options.solver->PredictSeconds(plan.options.factor.factor_dtype, k, order);
  return plan.factor.seconds + solve * (1 + static_cast<double>(order) / static_cast<double>(k));
}

}  // namespace

absl::StatusOr<SchurPlan> PlanSchur(const SchurOptions& options, PackedMatrix shape) {
  if (options.solver == nullptr) return absl::InvalidArgumentError("the options name no solver");
  CROUT_RETURN_IF_ERROR(CheckSquare(shape));
  const int64_t n = shape.rows;
  const int64_t k = options.leading;
  if (k < 0 || k > n) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the leading block has order ", k, "; it must be from 0 to the order of the matrix, ", n));
  }
  SchurPlan plan;
  plan.options = options;
  plan.shape = shape;
  plan.complement = {nullptr, shape.dtype, options.layout, n - k, n - k};
  CROUT_ASSIGN_OR_RETURN(plan.factor, PlanFactorize(options.factor, {nullptr, shape.dtype,
                                                                     Layout::kColumnMajor, k, k}));
  const MethodTraits& traits = options.factor.algorithm->traits();
  CROUT_RETURN_IF_ERROR(CheckSupports(*options.solver, traits.unit_diagonal, traits.name));
  CROUT_RETURN_IF_ERROR(AddBuffers(plan));
  CROUT_ASSIGN_OR_RETURN(plan.bytes, plan.buffers.Sum());
  plan.seconds = PredictSeconds(plan);
  return plan;
}

}  // namespace crout
