// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/operands.h"

#include "kernels/sparse_ops.h"

namespace crout {

absl::Status DenseOperand::Residual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                    const AnyMatrix& b, const AnyMatrix& r) const {
  return context.ops().Residual(a_, op, NormInf(op), x, b, r);
}

absl::Status DenseOperand::WideRangeResidual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                             const AnyMatrix& b, const AnyMatrix& r) const {
  return context.ops().WideRangeResidual(a_, op, x, b, r);
}

absl::Status DenseOperand::AbsProduct(ExecutionContext& context, Op op, const AnyMatrix& x,
                                      const AnyMatrix& b, const MatrixView<double>& w) const {
  return context.ops().AbsProduct(a_, op, x, b, w);
}

absl::Status DenseOperand::EquilibrationScales(ExecutionContext& context, double* row,
                                               double* col) const {
  return context.ops().EquilibrationScales(a_, row, col);
}

absl::Status SparseOperand::Residual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                     const AnyMatrix& b, const AnyMatrix& r) const {
  return context.sparse_ops()->Residual(a_, op, NormInf(op), x, b, r);
}

absl::Status SparseOperand::WideRangeResidual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                              const AnyMatrix& b, const AnyMatrix& r) const {
  return context.sparse_ops()->WideRangeResidual(a_, op, x, b, r);
}

absl::Status SparseOperand::AbsProduct(ExecutionContext& context, Op op, const AnyMatrix& x,
                                       const AnyMatrix& b, const MatrixView<double>& w) const {
  return context.sparse_ops()->AbsProduct(a_, op, x, b, w);
}

absl::Status SparseOperand::EquilibrationScales(ExecutionContext& context, double* row,
                                                double* col) const {
  return context.sparse_ops()->EquilibrationScales(a_, row, col);
}

std::unique_ptr<const Operand> MakeKeptOperand(const Factorization& factor) {
  const FactorSummary& summary = factor.summary;
  const int64_t n = summary.n;
  if (const Buffer& sparse = factor.sparse_matrix()) {
    const AnySparse a{sparse.data(), summary.matrix_dtype, n, summary.matrix_nonzeros};
    return std::make_unique<SparseOperand>(a, summary.norm_one, summary.norm_inf);
  }
  const AnyMatrix a{factor.matrix().data(), summary.matrix_dtype, n, n, n};
  return std::make_unique<DenseOperand>(a, summary.norm_one, summary.norm_inf);
}

}  // namespace crout
