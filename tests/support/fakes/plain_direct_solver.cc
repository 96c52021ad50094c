// SPDX-License-Identifier: Apache-2.0

#include "tests/support/fakes/plain_direct_solver.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/util/checked_math.h"

namespace crout::testing {
namespace {

template <class T>
void SwapRows(const MatrixView<T>& m, int64_t i, int64_t k) {
  for (int64_t j = 0; j < m.cols; ++j) std::swap(m(i, j), m(k, j));
}

// Divides row `pivot` by `by`. Then subtracts column[i] times this row from each other row i.
template <class T>
void Eliminate(const MatrixView<T>& m, int64_t pivot, T by, const T* column) {
  for (int64_t j = 0; j < m.cols; ++j) {
    const T x = m(pivot, j) /= by;
    for (int64_t i = 0; i < m.rows; ++i) {
      if (i != pivot) m(i, j) -= column[i] * x;
    }
  }
}

// Returns the 1-based index of the first column without a pivot, or 0.
template <class T>
int32_t Reduce(const MatrixView<T>& a, const MatrixView<T>& b, T* column, StopRequested stop) {
  for (int64_t k = 0; k < a.cols && !stop(); ++k) {
    const auto larger = [](T x, T y) { return std::abs(x) < std::abs(y); };
    const T* pivot = std::max_element(&a(0, k) + k, &a(0, k) + a.rows, larger);
    if (*pivot == 0) return static_cast<int32_t>(k + 1);
    const int64_t row = pivot - &a(0, k);
    SwapRows(a, k, row);
    SwapRows(b, k, row);
    std::copy_n(&a(0, k), a.rows, column);
    Eliminate(a, k, column[k], column);
    Eliminate(b, k, column[k], column);
    a(k, k) = column[k];
  }
  return 0;
}

}  // namespace

absl::StatusOr<size_t> PlainDirectSolver::WorkspaceBytes(DType dtype, int64_t n,
                                                         int64_t nrhs) const {
  return MatrixBytes(n + nrhs, 1, dtype);
}

double PlainDirectSolver::PredictSeconds(DType, int64_t n, int64_t nrhs) const {
  const auto order = static_cast<double>(n);
  return 1e-9 * order * order * (order + static_cast<double>(nrhs));
}

absl::Status PlainDirectSolver::Solve(ExecutionContext& context, const AnyMatrix& a,
                                      const AnyMatrix& b, std::span<std::byte> workspace,
                                      StopRequested stop) const {
  std::fill(workspace.begin(), workspace.end(), std::byte{0xff});
  context.report().info = DispatchReal(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Reduce(a.As<T>(), b.As<T>(), reinterpret_cast<T*>(workspace.data()), stop);
  });
  return absl::OkStatus();
}

}  // namespace crout::testing
