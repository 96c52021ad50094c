// SPDX-License-Identifier: Apache-2.0

#include "tests/support/fakes/toy_lu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace crout::testing {
namespace {

// Returns the row, at or below k, of the largest entry of column k.
int64_t PivotRow(const MatrixView<double>& a, int64_t k) {
  const double* column = &a(0, k);
  return std::max_element(column + k, column + a.rows,
                          [](double x, double y) { return std::abs(x) < std::abs(y); }) -
         column;
}

}  // namespace

absl::Status ToyLu::Factor(ExecutionContext& context, const AnyMatrix& any, int64_t* ipiv,
                           std::span<std::byte> workspace, const LuParameters&,
                           StopRequested) const {
  const MatrixView<double> a = any.As<double>();
  context.report().info = 0;
  int64_t interchanges = 0;
  for (int64_t k = 0; k < a.cols; ++k) {
    const int64_t row = PivotRow(a, k);
    ipiv[k] = row + 1;
    interchanges += row != k ? 1 : 0;
    for (int64_t j = 0; j < a.cols; ++j) std::swap(a(k, j), a(row, j));
    if (a(k, k) == 0 && context.report().info == 0) {
      context.report().info = static_cast<int32_t>(k + 1);
    }
    for (int64_t i = k + 1; i < a.rows && a(k, k) != 0; ++i) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < a.cols; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  std::memcpy(workspace.data(), &interchanges, sizeof(interchanges));
  return absl::OkStatus();
}

absl::Status ToyLu::Finish(ExecutionContext&, std::span<std::byte> workspace,
                           IterationReport* report) const {
  int64_t interchanges = 0;
  std::memcpy(&interchanges, workspace.data(), sizeof(interchanges));
  report->sections = 1;
  report->sweeps = {1};
  report->pivots = {interchanges};
  return absl::OkStatus();
}

}  // namespace crout::testing
