#include "tests/bench/crout_bench/accuracy.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace crout::bench {
namespace {

// Keeps a NaN, unlike std::max.
void Raise(double& most, double value) {
  if (!(value <= most)) most = value;
}

double MaxAbs(const double* values, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < count; ++i) Raise(most, std::abs(values[i]));
  return most;
}

double SumAbs(const double* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::abs(values[i]);
  return sum;
}

// L U: U as a full matrix, times L from the left.
std::vector<double> Product(const std::vector<double>& lu, int64_t n, bool unit_in_l) {
  std::vector<double> u(n * n, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    std::copy_n(lu.data() + j * n, j + 1, u.data() + j * n);
    if (!unit_in_l) u[j * (n + 1)] = 1;
  }
  cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans,
              unit_in_l ? CblasUnit : CblasNonUnit, n, n, 1.0, lu.data(), n, u.data(), n);
  return u;
}

// Column j of PA, by the interchanges one after the other.
void PermuteColumn(const std::vector<double>& a, const std::vector<int64_t>& ipiv, int64_t n,
                   int64_t j, std::vector<double>& column) {
  std::copy_n(a.data() + j * n, n, column.data());
  for (int64_t i = 0; i < n; ++i) std::swap(column[i], column[ipiv[i] - 1]);
}

}  // namespace

FactorAccuracy MeasureFactor(const std::vector<double>& a, const std::vector<double>& lu,
                             const std::vector<int64_t>& ipiv, int64_t n,
                             UnitDiagonal unit_diagonal, DType dtype) {
  const std::vector<double> product = Product(lu, n, unit_diagonal == UnitDiagonal::kL);
  FactorAccuracy accuracy;
  double norm = 0;
  double difference = 0;
  std::vector<double> column(n);
  for (int64_t j = 0; j < n; ++j) {
    Raise(norm, SumAbs(a.data() + j * n, n));
    PermuteColumn(a, ipiv, n, j, column);
    for (int64_t i = 0; i < n; ++i) column[i] -= product[i + j * n];
    Raise(accuracy.max_abs_diff, MaxAbs(column.data(), n));
    Raise(difference, SumAbs(column.data(), n));
  }
  const double scale = static_cast<double>(n) * norm * UnitRoundoff(dtype);
  accuracy.ratio = difference == 0 ? 0 : difference / scale;
  return accuracy;
}

double BackwardError(const std::vector<double>& a, const std::vector<double>& x,
                     const std::vector<double>& b, int64_t n, int64_t nrhs) {
  std::vector<double> residual = b;
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, nrhs, n, -1.0, a.data(), n, x.data(), n,
              1.0, residual.data(), n);
  std::vector<double> row_sums(n, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) row_sums[i] += std::abs(a[i + j * n]);
  }
  const double norm = MaxAbs(row_sums.data(), n);
  double worst = 0;
  for (int64_t j = 0; j < nrhs; ++j) {
    const double scale = norm * MaxAbs(x.data() + j * n, n) + MaxAbs(b.data() + j * n, n);
    const double size = MaxAbs(residual.data() + j * n, n);
    Raise(worst, size == 0 ? 0 : size / scale);
  }
  return worst;
}

std::vector<std::string> CoarsePattern(const std::vector<double>& a, int64_t n, int64_t cells) {
  const int64_t side = std::min(n, cells);
  std::vector<int64_t> nonzeros(side * side, 0);
  std::vector<int64_t> lines(side, 0);  // rows, or columns, of a cell
  for (int64_t j = 0; j < n; ++j) {
    const int64_t cell_column = j * side / n;
    ++lines[cell_column];
    for (int64_t i = 0; i < n; ++i) {
      nonzeros[i * side / n * side + cell_column] += a[i + j * n] != 0 ? 1 : 0;
    }
  }
  std::vector<std::string> pattern(side, std::string(side, '0'));
  for (int64_t i = 0; i < side; ++i) {
    for (int64_t j = 0; j < side; ++j) {
      const int64_t all = lines[i] * lines[j];
      pattern[i][j] = static_cast<char>('0' + (9 * nonzeros[i * side + j] + all - 1) / all);
    }
  }
  return pattern;
}

}  // namespace crout::bench
