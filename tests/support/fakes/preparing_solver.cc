// SPDX-License-Identifier: Apache-2.0

#include "tests/support/fakes/preparing_solver.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/execution_context.h"

namespace crout::testing {
namespace {

// Returns the diagonal of U. Prepare stores it, and Solve checks it.
std::vector<double> DiagonalOf(const FactorView& factor) {
  return DispatchReal(factor.lu.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<T> lu = factor.lu.As<T>();
    std::vector<double> diagonal(lu.rows);
    for (int64_t i = 0; i < lu.rows; ++i) diagonal[i] = lu(i, i);
    return diagonal;
  });
}

}  // namespace

absl::StatusOr<size_t> PreparingSolver::PreparedBytes(DType, int64_t n) const {
  return n * sizeof(double);
}

absl::Status PreparingSolver::Prepare(ExecutionContext& context, const FactorView& factor,
                                      std::span<std::byte> prepared) const {
  const std::vector<double> diagonal = DiagonalOf(factor);
  std::memcpy(prepared.data(), diagonal.data(), diagonal.size() * sizeof(double));
  double least = INFINITY;
  double largest = 0;
  for (const double d : diagonal) {
    least = std::min(least, std::abs(d));
    largest = std::max(largest, std::abs(d));
  }
  context.report().preparation = {largest / least, 1};
  return absl::OkStatus();
}

absl::Status PreparingSolver::Solve(ExecutionContext& context, const FactorView& factor, Op op,
                                    double tolerance, const AnyMatrix& b,
                                    std::span<std::byte> workspace) const {
  const std::vector<double> diagonal = DiagonalOf(factor);
  if (factor.prepared == nullptr ||
      std::memcmp(factor.prepared, diagonal.data(), diagonal.size() * sizeof(double)) != 0) {
    return absl::InternalError("the factor was not prepared");
  }
  const absl::Status status = inner_.Solve(context, factor, op, tolerance, b, workspace);
  DispatchReal(b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<T> x = b.As<T>();
    for (int64_t j = 0; j < x.cols; ++j) x(x.rows - 1, j) *= static_cast<T>(1 + error_);
  });
  return status;
}

Reliability PreparingSolver::AssessPreparation(const PreparationStats& preparation, DType, int64_t,
                                               Op op) const {
  const double condition =
      op == Op::kNone ? preparation.condition : preparation.transposed_condition;
  if (!(condition <= kMeasured)) return Reliability::kNone;
  return condition <= kTrusted ? Reliability::kFull : Reliability::kMeasured;
}

}  // namespace crout::testing
