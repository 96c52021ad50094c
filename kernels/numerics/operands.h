// SPDX-License-Identifier: Apache-2.0

// Operands: dense and sparse matrices, and the matrix kept with a factor.
#ifndef CROUT_KERNELS_NUMERICS_OPERANDS_H_
#define CROUT_KERNELS_NUMERICS_OPERANDS_H_

#include <memory>

#include "kernels/factorization.h"
#include "kernels/operators.h"
#include "kernels/sparse_view.h"

namespace crout {

// A column-major n x n matrix, using the MatrixOps of the context's device. A view: it borrows the
// elements.
class DenseOperand final : public Operand {
 public:
  // The norms of `a`, as defined by MatrixStats.
  DenseOperand(const AnyMatrix& a, double norm_one, double norm_inf)
      : a_(a), norm_one_(norm_one), norm_inf_(norm_inf) {}

  int64_t order() const override { return a_.rows; }
  DType vector_type() const override { return WideOf(a_.dtype); }
  double NormInf(Op op) const override { return op == Op::kNone ? norm_inf_ : norm_one_; }
  absl::Status Residual(ExecutionContext& context, Op op, const AnyMatrix& x, const AnyMatrix& b,
                        const AnyMatrix& r) const override;
  absl::Status WideRangeResidual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                 const AnyMatrix& b, const AnyMatrix& r) const override;
  absl::Status AbsProduct(ExecutionContext& context, Op op, const AnyMatrix& x, const AnyMatrix& b,
                          const MatrixView<double>& w) const override;
  absl::Status EquilibrationScales(ExecutionContext& context, double* row,
                                   double* col) const override;

 private:
  AnyMatrix a_;
  double norm_one_;
  double norm_inf_;
};

// Uses the SparseOps of the contexts, which must provide them. A view: it borrows the entries.
class SparseOperand final : public Operand {
 public:
  // The norms of `a`, as defined by MatrixStats.
  SparseOperand(const AnySparse& a, double norm_one, double norm_inf)
      : a_(a), norm_one_(norm_one), norm_inf_(norm_inf) {}

  int64_t order() const override { return a_.n; }
  DType vector_type() const override { return WideOf(a_.dtype); }
  double NormInf(Op op) const override { return op == Op::kNone ? norm_inf_ : norm_one_; }
  absl::Status Residual(ExecutionContext& context, Op op, const AnyMatrix& x, const AnyMatrix& b,
                        const AnyMatrix& r) const override;
  absl::Status WideRangeResidual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                 const AnyMatrix& b, const AnyMatrix& r) const override;
  absl::Status AbsProduct(ExecutionContext& context, Op op, const AnyMatrix& x, const AnyMatrix& b,
                          const MatrixView<double>& w) const override;
  absl::Status EquilibrationScales(ExecutionContext& context, double* row,
                                   double* col) const override;

 private:
  AnySparse a_;
  double norm_one_;
  double norm_inf_;
};

// Returns A as received, dense or sparse as it was kept. Callers use this function instead of
// testing the form. Borrows the factorization. If no matrix was kept, only order() and NormInf()
// are valid.
std::unique_ptr<const Operand> MakeKeptOperand(const Factorization& factor);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_OPERANDS_H_
