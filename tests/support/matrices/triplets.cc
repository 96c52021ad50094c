// SPDX-License-Identifier: Apache-2.0

#include "tests/support/matrices/triplets.h"

#include <algorithm>
#include <cmath>

#include "kernels/host/ops/matrix_functions.h"
#include "kernels/numerics/max_abs.h"

namespace crout::testing {
namespace {

void Raise(double& worst, long double error, long double over) {
  if (error > 0) worst = std::max(worst, static_cast<double>(error / over));
}

}  // namespace

template <class Visit>
void Triplets::ForEach(Op op, Visit visit) const {
  for (const Entry& e : entries_) {
    op == Op::kNone ? visit(e.i, e.j, e.v) : visit(e.j, e.i, e.v);
  }
}

HostMatrix Triplets::Dense() const {
  HostMatrix a(n_ * n_);
  ForEach(Op::kNone, [&](int64_t i, int64_t j, double v) { a[i + j * n_] = v; });
  return a;
}

long double Triplets::WideNormInf(Op op) const {
  std::vector<long double> sums(n_);
  ForEach(op, [&](int64_t i, int64_t, double v) { sums[i] += std::abs(v); });
  return *std::max_element(sums.begin(), sums.end());
}

absl::Status Triplets::Residual(ExecutionContext& context, Op op, const AnyMatrix& x_any,
                                const AnyMatrix& b_any, const AnyMatrix& r_any) const {
  const auto x = x_any.As<double>();
  const auto b = b_any.As<double>();
  const auto r = r_any.As<double>();
  for (int64_t k = 0; k < b.cols; ++k) {
    for (int64_t i = 0; i < n_; ++i) r(i, k) = b(i, k);
    ForEach(op, [&](int64_t i, int64_t j, double v) { r(i, k) -= v * x(j, k); });
  }
  context.report().residual.backward_error = host::NormwiseBackwardError(NormInf(op), x, b, r);
  return absl::OkStatus();
}

absl::Status Triplets::WideRangeResidual(ExecutionContext& context, Op op, const AnyMatrix& x_any,
                                         const AnyMatrix& b_any, const AnyMatrix& r_any) const {
  const auto x = x_any.As<double>();
  const auto b = b_any.As<double>();
  const auto r = r_any.As<double>();
  ++wide_residuals_;
  ResidualStats& stats = context.report().residual;
  stats = {};
  for (int64_t k = 0; k < b.cols; ++k) {
    std::vector<long double> sum(n_);
    std::vector<long double> scale(n_);
    for (int64_t i = 0; i < n_; ++i) scale[i] = std::abs(sum[i] = b(i, k));
    ForEach(op, [&](int64_t i, int64_t j, long double v) {
      sum[i] -= v * x(j, k);
      scale[i] += std::abs(v * x(j, k));
    });
    const long double largest = WideNormInf(op) * MaxAbs(x, k) + MaxAbs(b, k);
    for (int64_t i = 0; i < n_; ++i) {
      r(i, k) = static_cast<double>(sum[i]);
      Raise(stats.backward_error, std::abs(sum[i]), largest);
      Raise(stats.componentwise_error, std::abs(sum[i]), scale[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status Triplets::AbsProduct(ExecutionContext&, Op op, const AnyMatrix& x_any,
                                  const AnyMatrix& b_any, const MatrixView<double>& w) const {
  const auto x = x_any.As<double>();
  const auto b = b_any.As<double>();
  for (int64_t k = 0; k < b.cols; ++k) {
    for (int64_t i = 0; i < n_; ++i) w(i, k) = std::abs(b(i, k));
    ForEach(op, [&](int64_t i, int64_t j, double v) { w(i, k) += std::abs(v * x(j, k)); });
  }
  return absl::OkStatus();
}

absl::Status Triplets::EquilibrationScales(ExecutionContext&, double* row, double* col) const {
  std::fill_n(row, n_, 1);
  std::fill_n(col, n_, 1);
  Equilibrate(Op::kNone, col, row);
  Equilibrate(Op::kTranspose, row, col);
  return absl::OkStatus();
}

void Triplets::Equilibrate(Op op, const double* across, double* scales) const {
  std::vector<double> largest(n_);
  ForEach(op, [&](int64_t i, int64_t j, double v) {
    largest[i] = std::max(largest[i], std::abs(v) * across[j]);
  });
  for (int64_t i = 0; i < n_; ++i) {
    if (largest[i] > 0) scales[i] = std::ldexp(1.0, -std::ilogb(largest[i]));
  }
}

}  // namespace crout::testing
