// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/dense_operand.h"

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

}  // namespace crout
