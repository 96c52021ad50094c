// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/sparse_operand.h"

#include "kernels/sparse_ops.h"

namespace crout {

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

}  // namespace crout
