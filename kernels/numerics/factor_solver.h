// The inverse that a factorization stands for, by a triangular solver.
#ifndef CROUT_KERNELS_NUMERICS_FACTOR_SOLVER_H_
#define CROUT_KERNELS_NUMERICS_FACTOR_SOLVER_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/factorization.h"
#include "kernels/inverse_operator.h"
#include "kernels/lu_algorithm.h"
#include "kernels/numerics/error_bound.h"

namespace crout {

// Which matrix's inverse a FactorSolver is: that of A as it arrived, or of the equilibrated one
// that was factored.
enum class InverseOf : uint8_t { kOriginal, kFactored };

// Borrows the factorization and the context; used as they may be. Its own buffers are in use until
// Synchronize(). For a factor in single precision each column is scaled by a power of two on the
// way, so that what float64 can hold the solves neither overflow nor underflow on.
class FactorSolver final : public InverseOperator {
 public:
  // Device memory that a FactorSolver for `nrhs` columns owns. `analysis`: of a sparse factor.
  static absl::StatusOr<size_t> Bytes(const TriangularSolver& solver, DType factor_dtype, int64_t n,
                                      int64_t nrhs, const TriangularSolver* fallback = nullptr,
                                      const Analysis* analysis = nullptr);

  // For up to `max_nrhs` columns. `fallback`: what FallBack() turns to; null for none.
  static absl::StatusOr<FactorSolver> Create(ExecutionContext& context, const Factorization& factor,
                                             const TriangularSolver& solver, double tolerance,
                                             int64_t max_nrhs,
                                             const TriangularSolver* fallback = nullptr,
                                             InverseOf inverse_of = InverseOf::kOriginal);

  // From now on the fallback solves. Allocates nothing.
  void FallBack() { solver_ = fallback_; }
  std::string_view name() const { return solver_->name(); }

  int64_t order() const override { return summary_->n; }
  DType vector_type() const override { return WideOf(summary_->factor_dtype); }
  absl::Status Apply(Op op, const AnyMatrix& in, const AnyMatrix& out) override;

  // Estimate of how far M, what Apply applies, is from the inverse of A: what the factorization's
  // probe measured, and some roundings, unknown where nothing was measured; and the most that a
  // pivot of a sparse factor is made larger by, where that was done.
  InverseError Error() const;

  // Whether Apply scales its right-hand sides.
  bool ScalesRhs(Op op) const { return RhsScales(op) != nullptr; }

  // As Apply, and fills report().matrix with the statistics of `in` as the triangular solves get
  // it: scaled, in the factor's type. A NaN or Inf there is one of `in`, or what scaling it as the
  // matrix was made of it.
  absl::Status SolveAndInspect(Op op, const AnyMatrix& in, const AnyMatrix& out);

 private:
  FactorSolver(ExecutionContext& context, const Factorization& factor,
               const TriangularSolver& solver, const TriangularSolver* fallback, double tolerance,
               int64_t max_nrhs, InverseOf inverse_of);

  // With As = diag(r) A diag(c): A x = b is As (x / c) = r b, and A^T x = b is As^T (x / r) = c b.
  const double* RhsScales(Op op) const { return op == Op::kNone ? row_scales_ : col_scales_; }
  const double* SolutionScales(Op op) const { return op == Op::kNone ? col_scales_ : row_scales_; }

  // The exponent of the right-hand sides in the factor's type: as large as the norm of the matrix
  // that was factored, so that solutions are about 1, but far from the end of float32's range.
  int WorkExponent() const;

  // Where the triangular solves happen on the way to `out`.
  AnyMatrix Work(const AnyMatrix& out) const;
  absl::Status FillWork(const AnyMatrix& in, const double* scales, const AnyMatrix& work);
  absl::Status SolveWork(Op op, const AnyMatrix& work, const double* scales, const AnyMatrix& out);

  ExecutionContext* context_;
  const FactorSummary* summary_;
  const TriangularSolver* solver_;
  const TriangularSolver* fallback_;
  double tolerance_;
  int64_t max_nrhs_;
  FactorView view_;
  const double* row_scales_ = nullptr;  // null where the matrix was not scaled
  const double* col_scales_ = nullptr;
  // Empty for a factor in the wide type: the right-hand sides in the factor's type, and the scales
  // of their columns there (max_nrhs) and back.
  Buffer converted_;
  Buffer column_scales_;
  Buffer workspace_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_FACTOR_SOLVER_H_
