// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/factor_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Larger powers of two are not needed to keep a solve in float32's range, and would leave less room
// for growth during the solve.
constexpr int kFarthestExponent = 60;

// Returns the smallest magnitude of a perturbed pivot in a front, however small its column. The
// bound keeps the quotients finite.
double MinPerturbedPivot(DType dtype) {
  return 4 * (RealOf(dtype) == DType::kFloat64 ? double{std::numeric_limits<double>::min()}
                                               : double{std::numeric_limits<float>::min()});
}

struct SolverBytes {
  size_t converted = 0;
  size_t column_scales = 0;
  size_t workspace = 0;
};

absl::StatusOr<SolverBytes> PlanBytes(const TriangularSolver& solver,
                                      const TriangularSolver* fallback, const Analysis* analysis,
                                      DType factor_dtype, int64_t n, int64_t nrhs) {
  SolverBytes bytes;
  if (factor_dtype != WideOf(factor_dtype)) {
    CROUT_ASSIGN_OR_RETURN(bytes.converted, MatrixBytes(n, nrhs, factor_dtype));
    CROUT_ASSIGN_OR_RETURN(bytes.column_scales, MatrixBytes(2, nrhs, DType::kFloat64));
  }
  CROUT_ASSIGN_OR_RETURN(bytes.workspace,
                         analysis != nullptr
                             ? solver.SparseWorkspaceBytes(*analysis, factor_dtype, nrhs)
                             : solver.WorkspaceBytes(factor_dtype, n, nrhs));
  if (fallback == nullptr) return bytes;
  CROUT_ASSIGN_OR_RETURN(const size_t other, fallback->WorkspaceBytes(factor_dtype, n, nrhs));
  bytes.workspace = std::max(bytes.workspace, other);
  return bytes;
}

}  // namespace

absl::StatusOr<size_t> FactorSolver::Bytes(const TriangularSolver& solver, DType factor_dtype,
                                           int64_t n, int64_t nrhs,
                                           const TriangularSolver* fallback,
                                           const Analysis* analysis) {
  CROUT_ASSIGN_OR_RETURN(const SolverBytes bytes,
                         PlanBytes(solver, fallback, analysis, factor_dtype, n, nrhs));
  return ByteSum()
      .AddBuffer(bytes.converted)
      .AddBuffer(bytes.column_scales)
      .AddBuffer(bytes.workspace)
      .total();
}

absl::StatusOr<FactorSolver> FactorSolver::Create(
    ExecutionContext& context, const Factorization& factor, const TriangularSolver& solver,
    double tolerance, int64_t max_nrhs, const TriangularSolver* fallback, InverseOf inverse_of) {
  const FactorSummary& summary = factor.summary;
  MemoryResource& memory = context.device().memory();
  CROUT_ASSIGN_OR_RETURN(const SolverBytes bytes,
                         PlanBytes(solver, fallback, factor.view().analysis, summary.factor_dtype,
                                   summary.n, max_nrhs));
  FactorSolver result(context, factor, solver, fallback, tolerance, max_nrhs, inverse_of);
  CROUT_ASSIGN_OR_RETURN(result.converted_, memory.Allocate(bytes.converted));
  CROUT_ASSIGN_OR_RETURN(result.column_scales_, memory.Allocate(bytes.column_scales));
  CROUT_ASSIGN_OR_RETURN(result.workspace_, memory.Allocate(bytes.workspace));
  return result;
}

FactorSolver::FactorSolver(ExecutionContext& context, const Factorization& factor,
                           const TriangularSolver& solver, const TriangularSolver* fallback,
                           double tolerance, int64_t max_nrhs, InverseOf inverse_of)
    : context_(&context),
      summary_(&factor.summary),
      solver_(&solver),
      fallback_(fallback),
      tolerance_(tolerance),
      max_nrhs_(max_nrhs),
      view_(factor.view()) {
  if (inverse_of == InverseOf::kFactored) return;
  if (summary_->sparse) {
    // In float32, the solver's own products with the scales could overflow or underflow.
    if (summary_->factor_dtype == WideOf(summary_->factor_dtype)) return;
    const auto [row, column] = solver.ScalesOf(view_);
    row_scales_ = row;
    col_scales_ = column;
    view_.caller_scales = row != nullptr;
    return;
  }
  const double* scales = factor.scales().as<double>();
  row_scales_ = summary_->row_scaled ? scales : nullptr;
  col_scales_ = summary_->col_scaled ? scales + summary_->n : nullptr;
}

int FactorSolver::WorkExponent() const {
  // Scaled rows have their largest entry near 1; unscaled columns are only made alike.
  if (row_scales_ != nullptr || summary_->norm_inf == 0) return 0;
  return std::clamp(std::ilogb(summary_->norm_inf), -kFarthestExponent, kFarthestExponent);
}

AnyMatrix FactorSolver::Work(const AnyMatrix& out) const {
  if (!converted_) return out;
  return {converted_.data(), summary_->factor_dtype, out.rows, out.cols, out.rows};
}

absl::Status FactorSolver::FillWork(const AnyMatrix& in, const double* scales,
                                    const AnyMatrix& work) {
  if (work.data == in.data && scales == nullptr) return absl::OkStatus();
  if (!converted_) return context_->ops().CopyScaled(in, scales, nullptr, work);
  auto* const down = column_scales_.as<double>();
  CROUT_RETURN_IF_ERROR(
      context_->ops().ColumnScales(in, scales, WorkExponent(), down, down + max_nrhs_));
  return context_->ops().CopyScaled(in, scales, down, work);
}

absl::Status FactorSolver::SolveWork(Op op, const AnyMatrix& work, const double* scales,
                                     const AnyMatrix& out) {
  const std::span<std::byte> workspace(workspace_.data(), workspace_.size());
  CROUT_RETURN_IF_ERROR(solver_->Solve(*context_, view_, op, tolerance_, work, workspace));
  if (!converted_ && scales == nullptr) return absl::OkStatus();
  const double* up = converted_ ? column_scales_.as<double>() + max_nrhs_ : nullptr;
  return context_->ops().CopyScaled(work, scales, up, out);
}

absl::Status FactorSolver::Apply(Op op, const AnyMatrix& in, const AnyMatrix& out) {
  const AnyMatrix work = Work(out);
  CROUT_RETURN_IF_ERROR(FillWork(in, RhsScales(op), work));
  return SolveWork(op, work, SolutionScales(op), out);
}

InverseError FactorSolver::Error() const {
  // Covers a few roundings of the matrix and of the solves. The n errors of the elimination add up
  // in a row of the inverse as rounding errors do, hence the square root.
  constexpr double kFewRoundings = 4;
  const double eliminated = summary_->quality.value_or(std::numeric_limits<double>::infinity());
  const DType dtype = summary_->factor_dtype;
  InverseError error;
  error.relative = UnitRoundoff(dtype) *
                   (kFewRoundings + std::sqrt(static_cast<double>(summary_->n)) * eliminated);
  if (summary_->sparse && summary_->sparse->numeric.perturbed_pivots > 0) {
    error.pivots = PivotPerturbation(dtype, /*bordered=*/true);
    error.scaled_pivots = !view_.analysis->row_scale.empty();
    // In a scaled matrix, all columns are far above this least pivot.
    if (!error.scaled_pivots) error.least_pivot = MinPerturbedPivot(dtype);
  }
  return error;
}

absl::Status FactorSolver::SolveAndInspect(Op op, const AnyMatrix& in, const AnyMatrix& out) {
  const AnyMatrix work = Work(out);
  CROUT_RETURN_IF_ERROR(FillWork(in, RhsScales(op), work));
  const PackedMatrix packed{work.data, work.dtype, Layout::kColumnMajor, work.rows, work.cols};
  CROUT_RETURN_IF_ERROR(context_->ops().Import(packed, work));
  return SolveWork(op, work, SolutionScales(op), out);
}

}  // namespace crout
