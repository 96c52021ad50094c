#include "kernels/factor_solver.h"

#include <utility>

#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

absl::StatusOr<size_t> ConvertedBytes(DType factor_dtype, int64_t n, int64_t nrhs) {
  if (factor_dtype == DType::kFloat64) return 0;
  return MatrixBytes(n, nrhs, factor_dtype);
}

}  // namespace

absl::StatusOr<size_t> FactorSolver::Bytes(const TriangularSolver& solver, DType factor_dtype,
                                           int64_t n, int64_t nrhs) {
  CROUT_ASSIGN_OR_RETURN(const size_t converted, ConvertedBytes(factor_dtype, n, nrhs));
  CROUT_ASSIGN_OR_RETURN(const size_t workspace, solver.WorkspaceBytes(factor_dtype, n, nrhs));
  return ByteSum().Add(converted).Add(workspace).total();
}

absl::StatusOr<FactorSolver> FactorSolver::Create(ExecutionContext& context,
                                                  const Factorization& factor,
                                                  const TriangularSolver& solver, double tolerance,
                                                  int64_t max_nrhs) {
  const FactorSummary& summary = factor.summary;
  MemoryResource& memory = context.device().memory();
  CROUT_ASSIGN_OR_RETURN(const size_t converted_bytes,
                         ConvertedBytes(summary.factor_dtype, summary.n, max_nrhs));
  CROUT_ASSIGN_OR_RETURN(const size_t workspace_bytes,
                         solver.WorkspaceBytes(summary.factor_dtype, summary.n, max_nrhs));
  CROUT_ASSIGN_OR_RETURN(Buffer converted, memory.Allocate(converted_bytes));
  CROUT_ASSIGN_OR_RETURN(Buffer workspace, memory.Allocate(workspace_bytes));
  return FactorSolver(context, factor, solver, tolerance, std::move(converted),
                      std::move(workspace));
}

FactorSolver::FactorSolver(ExecutionContext& context, const Factorization& factor,
                           const TriangularSolver& solver, double tolerance, Buffer converted,
                           Buffer workspace)
    : context_(&context),
      summary_(&factor.summary),
      solver_(&solver),
      tolerance_(tolerance),
      view_(factor.view()),
      converted_(std::move(converted)),
      workspace_(std::move(workspace)) {
  const double* scales = factor.storage.scales.as<double>();
  row_scales_ = summary_->row_scaled ? scales : nullptr;
  col_scales_ = summary_->col_scaled ? scales + summary_->n : nullptr;
}

AnyMatrix FactorSolver::Work(const MatrixView<double>& out) const {
  if (!converted_) return AsAny(out);
  return {converted_.data(), summary_->factor_dtype, out.rows, out.cols, out.rows};
}

absl::Status FactorSolver::FillWork(const MatrixView<double>& in, const double* scales,
                                    const AnyMatrix& work) {
  if (work.data == AsAny(in).data && scales == nullptr) return absl::OkStatus();
  return context_->ops().CopyScaled(AsAny(in), scales, nullptr, work);
}

absl::Status FactorSolver::SolveWork(Op op, const AnyMatrix& work, const double* scales,
                                     const MatrixView<double>& out) {
  const std::span<std::byte> workspace(workspace_.data(), workspace_.size());
  CROUT_RETURN_IF_ERROR(solver_->Solve(*context_, view_, op, tolerance_, work, workspace));
  if (!converted_ && scales == nullptr) return absl::OkStatus();
  return context_->ops().CopyScaled(work, scales, nullptr, AsAny(out));
}

absl::Status FactorSolver::Solve(Op op, SolveWith with, const MatrixView<double>& in,
                                 const MatrixView<double>& out) {
  const bool scales = with == SolveWith::kOriginal;
  const AnyMatrix work = Work(out);
  CROUT_RETURN_IF_ERROR(FillWork(in, scales ? RhsScales(op) : nullptr, work));
  return SolveWork(op, work, scales ? SolutionScales(op) : nullptr, out);
}

absl::Status FactorSolver::SolveAndInspect(Op op, const MatrixView<double>& in,
                                           const MatrixView<double>& out) {
  const AnyMatrix work = Work(out);
  CROUT_RETURN_IF_ERROR(FillWork(in, RhsScales(op), work));
  const PackedMatrix packed{work.data, work.dtype, Layout::kColumnMajor, work.rows, work.cols};
  CROUT_RETURN_IF_ERROR(context_->ops().Import(packed, work));
  return SolveWork(op, work, SolutionScales(op), out);
}

}  // namespace crout
