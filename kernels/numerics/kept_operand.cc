// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/kept_operand.h"

#include "kernels/numerics/dense_operand.h"
#include "kernels/numerics/sparse_operand.h"

namespace crout {

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
