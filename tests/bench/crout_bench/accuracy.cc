// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/accuracy.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <span>
#include <utility>

namespace crout::bench {
namespace {

// Sets `most` to the larger value, or to NaN if one of them is NaN.
void Raise(double& most, double value) {
  if (!(value <= most)) most = value;
}

template <class T>
double MaxAbs(const T* values, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < count; ++i) Raise(most, std::abs(values[i]));
  return most;
}

template <class T>
double SumAbs(const T* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::abs(values[i]);
  return sum;
}

// Views `values`, the real numbers or their interleaved parts, as elements of type T.
template <class T>
std::span<const T> ElementsOf(const std::vector<double>& values) {
  return {reinterpret_cast<const T*>(values.data()), values.size() * sizeof(double) / sizeof(T)};
}

// Calls f(TypeTag<double>{}) or f(TypeTag<std::complex<double>>{}).
template <class F>
auto DispatchWide(DType dtype, F&& f) {
  return IsComplex(dtype) ? f(TypeTag<std::complex<double>>{}) : f(TypeTag<double>{});
}

// Computes u := L u, where L is the lower triangle of lu.
void MultiplyLower(std::span<const double> lu, int64_t n, CBLAS_DIAG diag, double* u) {
  cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, diag, n, n, 1.0, lu.data(), n, u,
              n);
}
void MultiplyLower(std::span<const std::complex<double>> lu, int64_t n, CBLAS_DIAG diag,
                   std::complex<double>* u) {
  const std::complex<double> one = 1;
  cblas_ztrmm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, diag, n, n, &one, lu.data(), n, u,
              n);
}

// Computes r := r - A x.
void SubtractProduct(std::span<const double> a, std::span<const double> x, int64_t n, int64_t nrhs,
                     double* r) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, nrhs, n, -1.0, a.data(), n, x.data(), n,
              1.0, r, n);
}
void SubtractProduct(std::span<const std::complex<double>> a,
                     std::span<const std::complex<double>> x, int64_t n, int64_t nrhs,
                     std::complex<double>* r) {
  const std::complex<double> minus_one = -1;
  const std::complex<double> one = 1;
  cblas_zgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, nrhs, n, &minus_one, a.data(), n,
              x.data(), n, &one, r, n);
}

// Returns the product L U of the triangles in lu (n x n).
template <class T>
std::vector<T> Product(std::span<const T> lu, int64_t n, bool unit_in_l) {
  std::vector<T> u(n * n, T{});
  for (int64_t j = 0; j < n; ++j) {
    std::copy_n(lu.data() + j * n, j + 1, u.data() + j * n);
    if (!unit_in_l) u[j * (n + 1)] = 1;
  }
  MultiplyLower(lu, n, unit_in_l ? CblasUnit : CblasNonUnit, u.data());
  return u;
}

// Sets `column` to column j of PA. The interchanges are applied in order.
template <class T>
void PermuteColumn(std::span<const T> a, const std::vector<int64_t>& ipiv, int64_t n, int64_t j,
                   std::vector<T>& column) {
  std::copy_n(a.data() + j * n, n, column.data());
  for (int64_t i = 0; i < n; ++i) std::swap(column[i], column[ipiv[i] - 1]);
}

template <class T>
FactorAccuracy Measure(std::span<const T> a, std::span<const T> lu,
                       const std::vector<int64_t>& ipiv, int64_t n, UnitDiagonal unit_diagonal,
                       DType dtype) {
  const std::vector<T> product = Product(lu, n, unit_diagonal == UnitDiagonal::kL);
  FactorAccuracy accuracy;
  double norm = 0;
  double difference = 0;
  std::vector<T> column(n);
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

template <class T>
double ErrorOf(std::span<const T> a, std::span<const T> x, std::span<const T> b, int64_t n,
               int64_t nrhs) {
  std::vector<T> residual(b.begin(), b.end());
  SubtractProduct(a, x, n, nrhs, residual.data());
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

void MultiplyTriangle(std::span<const double> lu, int64_t n, int64_t nrhs, CBLAS_UPLO uplo,
                      CBLAS_DIAG diag, double* x) {
  cblas_dtrmm(CblasColMajor, CblasLeft, uplo, CblasNoTrans, diag, n, nrhs, 1.0, lu.data(), n, x, n);
}
void MultiplyTriangle(std::span<const std::complex<double>> lu, int64_t n, int64_t nrhs,
                      CBLAS_UPLO uplo, CBLAS_DIAG diag, std::complex<double>* x) {
  const std::complex<double> one = 1;
  cblas_ztrmm(CblasColMajor, CblasLeft, uplo, CblasNoTrans, diag, n, nrhs, &one, lu.data(), n, x,
              n);
}

template <class T>
double DifferenceOf(std::span<const T> lu, std::span<const T> x, int64_t n, int64_t nrhs,
                    bool unit_in_l) {
  std::vector<T> b(x.begin(), x.end());
  MultiplyTriangle(lu, n, nrhs, CblasUpper, unit_in_l ? CblasNonUnit : CblasUnit, b.data());
  MultiplyTriangle(lu, n, nrhs, CblasLower, unit_in_l ? CblasUnit : CblasNonUnit, b.data());
  for (T& element : b) element -= T{1};
  return MaxAbs(b.data(), static_cast<int64_t>(b.size()));
}

template <class T>
std::vector<double> LargestByCell(std::span<const T> a, int64_t n, int64_t side) {
  std::vector<double> largest(side * side, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      double& cell = largest[i * side / n * side + j * side / n];
      const double size = std::abs(a[i + j * n]);
      if (!(size <= cell)) cell = std::isfinite(cell) ? size : cell;
    }
  }
  return largest;
}

MagnitudePattern PatternOf(const std::vector<double>& largest, int64_t side) {
  constexpr int kSteps = 'z' - 'a';
  MagnitudePattern pattern;
  bool any = false;
  for (const double size : largest) {
    if (size == 0 || !std::isfinite(size)) continue;
    const double power = std::log10(size);
    pattern.low = any ? std::min(pattern.low, power) : power;
    pattern.high = any ? std::max(pattern.high, power) : power;
    any = true;
  }
  const double width = pattern.high > pattern.low ? pattern.high - pattern.low : 1;
  pattern.rows.assign(side, std::string(side, '.'));
  for (int64_t k = 0; k < side * side; ++k) {
    if (largest[k] == 0) continue;
    char& cell = pattern.rows[k / side][k % side];
    const double share = (std::log10(largest[k]) - pattern.low) / width;
    cell = std::isfinite(largest[k]) ? static_cast<char>('a' + std::lround(share * kSteps)) : '!';
  }
  return pattern;
}

}  // namespace

FactorAccuracy MeasureFactor(const std::vector<double>& a, const std::vector<double>& lu,
                             const std::vector<int64_t>& ipiv, int64_t n,
                             UnitDiagonal unit_diagonal, DType dtype) {
  return DispatchWide(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Measure(ElementsOf<T>(a), ElementsOf<T>(lu), ipiv, n, unit_diagonal, dtype);
  });
}

double BackwardError(const std::vector<double>& a, const std::vector<double>& x,
                     const std::vector<double>& b, int64_t n, int64_t nrhs, DType dtype) {
  return DispatchWide(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return ErrorOf(ElementsOf<T>(a), ElementsOf<T>(x), ElementsOf<T>(b), n, nrhs);
  });
}

double SolveDifference(const std::vector<double>& lu, const std::vector<double>& x, int64_t n,
                       int64_t nrhs, UnitDiagonal unit_diagonal, DType dtype) {
  return DispatchWide(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return DifferenceOf(ElementsOf<T>(lu), ElementsOf<T>(x), n, nrhs,
                        unit_diagonal == UnitDiagonal::kL);
  });
}

MagnitudePattern CoarsePattern(const std::vector<double>& a, int64_t n, DType dtype,
                               int64_t cells) {
  const int64_t side = std::min(n, cells);
  return PatternOf(DispatchWide(dtype,
                                [&](auto tag) {
                                  using T = typename decltype(tag)::type;
                                  return LargestByCell(ElementsOf<T>(a), n, side);
                                }),
                   side);
}

}  // namespace crout::bench
