// SPDX-License-Identifier: Apache-2.0

#include "client/cli/commands/backward_error.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

namespace crout::cli {
namespace {

using Real = long double;
using Complex = std::complex<Real>;

Real Abs1(const Complex& z) { return std::fabs(z.real()) + std::fabs(z.imag()); }

// std::max ignores a NaN in one of its arguments.
Real MaxOrNan(Real a, Real b) { return std::isnan(a) || a > b ? a : b; }

Real Ratio(Real error, Real scale) { return error == 0 ? 0 : error / scale; }

// Calls f(i, j, value) for every entry of op(A).
template <class F>
void ForEachOf(const LocalMatrix& a, Operation operation, F f) {
  a.ForEach([&](int64_t i, int64_t j, const std::complex<double>& value) {
    if (operation == Operation::kNone) return f(i, j, Complex(value));
    f(j, i, operation == Operation::kTranspose ? Complex(value) : std::conj(Complex(value)));
  });
}

// Largest row sum of moduli.
Real NormInf(const LocalMatrix& a, Operation operation) {
  std::vector<Real> sums(static_cast<size_t>(a.rows()));
  ForEachOf(a, operation, [&](int64_t i, int64_t, const Complex& value) {
    sums[static_cast<size_t>(i)] += std::abs(value);
  });
  Real norm = 0;
  for (const Real sum : sums) norm = MaxOrNan(norm, sum);
  return norm;
}

// Entries of B by column, because coordinates may come in any order.
std::vector<std::vector<Complex>> ColumnsOf(const LocalMatrix& b) {
  std::vector<std::vector<Complex>> columns(static_cast<size_t>(b.cols()),
                                            std::vector<Complex>(static_cast<size_t>(b.rows())));
  b.ForEach([&](int64_t i, int64_t j, const std::complex<double>& value) {
    columns[static_cast<size_t>(j)][static_cast<size_t>(i)] += Complex(value);
  });
  return columns;
}

}  // namespace

absl::StatusOr<BackwardErrors> ComputeBackwardErrors(const LocalMatrix& a, Operation operation,
                                                     const LocalMatrix& x, const LocalMatrix& b) {
  if (a.rows() != a.cols() || x.rows() != a.rows() || b.rows() != a.rows() ||
      x.cols() != b.cols()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A is ", a.rows(), " x ", a.cols(), ", X ", x.rows(), " x ", x.cols(), ", B ", b.rows(),
        " x ", b.cols(),
        ". A must be square, and X and B must have the rows of A and equally many columns"));
  }
  if (x.dense() == nullptr) {
    return absl::InvalidArgumentError(
        "X is in coordinate format. Write it in a dense format, such as `array real general`");
  }
  BackwardErrors errors;
  if (a.rows() == 0 || x.cols() == 0) return errors;
  const auto n = static_cast<size_t>(a.rows());
  const Real norm_a = NormInf(a, operation);
  const auto columns = ColumnsOf(b);
  Real normwise = 0, componentwise = 0;
  for (size_t k = 0; k < columns.size(); ++k) {
    std::vector<Complex> residual = columns[k];
    std::vector<Real> scale(n);
    Real norm_x = 0, norm_b = 0, norm_r = 0;
    for (size_t i = 0; i < n; ++i) {
      scale[i] = Abs1(residual[i]);
      norm_b = MaxOrNan(norm_b, std::abs(residual[i]));
      norm_x = MaxOrNan(
          norm_x,
          std::abs(Complex(x.dense()->At(static_cast<int64_t>(i), static_cast<int64_t>(k)))));
    }
    ForEachOf(a, operation, [&](int64_t i, int64_t j, const Complex& value) {
      const Complex x_j(x.dense()->At(j, static_cast<int64_t>(k)));
      residual[static_cast<size_t>(i)] -= value * x_j;
      scale[static_cast<size_t>(i)] += Abs1(value) * Abs1(x_j);
    });
    for (size_t i = 0; i < n; ++i) {
      norm_r = MaxOrNan(norm_r, std::abs(residual[i]));
      componentwise = MaxOrNan(componentwise, Ratio(Abs1(residual[i]), scale[i]));
    }
    normwise = MaxOrNan(normwise, Ratio(norm_r, norm_a * norm_x + norm_b));
  }
  errors.normwise = static_cast<double>(normwise);
  errors.componentwise = static_cast<double>(componentwise);
  return errors;
}

}  // namespace crout::cli
