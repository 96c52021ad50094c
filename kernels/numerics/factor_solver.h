// SPDX-License-Identifier: Apache-2.0

// The inverse operator of a factorization, applied by a triangular solver.
#ifndef CROUT_KERNELS_NUMERICS_FACTOR_SOLVER_H_
#define CROUT_KERNELS_NUMERICS_FACTOR_SOLVER_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/factorization.h"
#include "kernels/lu_algorithm.h"
#include "kernels/numerics/error_bound.h"
#include "kernels/operators.h"

namespace crout {

// The matrix that a FactorSolver inverts: A as received, or the equilibrated matrix that was
// factored.
enum class InverseOf : uint8_t { kOriginal, kFactored };

// Borrows the factorization and the context, and has their thread-safety. Its own buffers are in
// use until Synchronize(). For a factor in single precision, each column is scaled by a power of
// two, so that columns within float64's range do not overflow or underflow in the solve.
class FactorSolver final : public InverseOperator {
 public:
  // Returns the bytes of device memory that a FactorSolver for `nrhs` columns allocates. `analysis`
  // is set for a sparse factor.
  static absl::StatusOr<size_t> Bytes(const TriangularSolver& solver, DType factor_dtype, int64_t n,
                                      int64_t nrhs, const TriangularSolver* fallback = nullptr,
                                      const Analysis* analysis = nullptr);

  // Creates a solver for up to `max_nrhs` columns. `fallback` is the solver after FallBack(), or
  // null.
  static absl::StatusOr<FactorSolver> Create(ExecutionContext& context, const Factorization& factor,
                                             const TriangularSolver& solver, double tolerance,
                                             int64_t max_nrhs,
                                             const TriangularSolver* fallback = nullptr,
                                             InverseOf inverse_of = InverseOf::kOriginal);

  // Switches to the fallback solver. Allocates nothing.
  void FallBack() { solver_ = fallback_; }
  std::string_view name() const { return solver_->name(); }

  int64_t order() const override { return summary_->n; }
  DType vector_type() const override { return WideOf(summary_->factor_dtype); }
  absl::Status Apply(Op op, const AnyMatrix& in, const AnyMatrix& out) override;

  // Returns an estimate of the error of this inverse. `relative` is the result of the
  // factorization's probe plus some roundings (unknown without a probe). The pivot part is the
  // largest perturbation of a sparse factor's pivots.
  InverseError Error() const;

  // Returns true if Apply scales its right-hand sides.
  bool ScalesRhs(Op op) const { return RhsScales(op) != nullptr; }

  // Same as Apply, and fills report().matrix with the statistics of `in` as passed to the
  // triangular solves: scaled, in the factor's type. A NaN or Inf there comes from `in`, or from
  // scaling `in` as the matrix was scaled.
  absl::Status SolveAndInspect(Op op, const AnyMatrix& in, const AnyMatrix& out);

 private:
  FactorSolver(ExecutionContext& context, const Factorization& factor,
               const TriangularSolver& solver, const TriangularSolver* fallback, double tolerance,
               int64_t max_nrhs, InverseOf inverse_of);

  // With As = diag(r) A diag(c): A x = b is As (x / c) = r b, and A^T x = b is As^T (x / r) = c b.
  const double* RhsScales(Op op) const { return op == Op::kNone ? row_scales_ : col_scales_; }
  const double* SolutionScales(Op op) const { return op == Op::kNone ? col_scales_ : row_scales_; }

  // Exponent of the right-hand sides in the factor's type: the exponent of the factored matrix's
  // norm, so that solutions are about 1, but far from the end of float32's range.
  int WorkExponent() const;

  // Returns the matrix in which the triangular solves for `out` run.
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
  const double* row_scales_ = nullptr;  // null if the matrix was not scaled
  const double* col_scales_ = nullptr;
  // Empty for a factor in the wide type. Otherwise: right-hand sides in the factor's type, and
  // their column scales (max_nrhs) followed by the inverse scales.
  Buffer converted_;
  Buffer column_scales_;
  Buffer workspace_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_FACTOR_SOLVER_H_
