// SPDX-License-Identifier: Apache-2.0

// A minimal sparse implementation of Operand on the host device.
#ifndef CROUT_TESTS_SUPPORT_MATRICES_TRIPLETS_H_
#define CROUT_TESTS_SUPPORT_MATRICES_TRIPLETS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/operators.h"
#include "tests/support/matrices/gallery.h"

namespace crout::testing {

// An n x n float64 matrix of few entries at distinct positions, multiplied entry by entry. Used by
// one thread at a time.
class Triplets final : public Operand {
 public:
  struct Entry {  // 0-based indices
    int64_t i;
    int64_t j;
    double v;
  };

  Triplets(int64_t n, std::vector<Entry> entries) : n_(n), entries_(std::move(entries)) {}

  HostMatrix Dense() const;  // n x n
  // Number of calls of WideRangeResidual.
  int wide_residuals() const { return wide_residuals_; }

  int64_t order() const override { return n_; }
  DType vector_type() const override { return DType::kFloat64; }
  double NormInf(Op op) const override { return static_cast<double>(WideNormInf(op)); }
  absl::Status Residual(ExecutionContext& context, Op op, const AnyMatrix& x, const AnyMatrix& b,
                        const AnyMatrix& r) const override;
  absl::Status WideRangeResidual(ExecutionContext& context, Op op, const AnyMatrix& x,
                                 const AnyMatrix& b, const AnyMatrix& r) const override;
  absl::Status AbsProduct(ExecutionContext& context, Op op, const AnyMatrix& x, const AnyMatrix& b,
                          const MatrixView<double>& w) const override;
  absl::Status EquilibrationScales(ExecutionContext& context, double* row,
                                   double* col) const override;

 private:
  // Calls visit(i, j, v) for the entries of op(A).
  template <class Visit>
  void ForEach(Op op, Visit visit) const;
  long double WideNormInf(Op op) const;
  // Sets `scales` to powers of two that scale the rows of op(A) diag(across) to a maximum in [1,
  // 2).
  void Equilibrate(Op op, const double* across, double* scales) const;

  const int64_t n_;
  const std::vector<Entry> entries_;
  mutable int wide_residuals_ = 0;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MATRICES_TRIPLETS_H_
