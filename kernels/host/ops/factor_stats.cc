// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/matrix_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>

#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/lanes.h"
#include "kernels/host/ops/vector_clones.h"
#include "kernels/numerics/normalizing_scale.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kColumnsPerPass = 4096;  // columns processed in one parallel loop

// True if all elements of x are finite.
template <class T>
bool AllFinite(const T* x, int64_t count) {
  using Part = RealPart<T>;
  const auto* const parts = reinterpret_cast<const Part*>(x);
  const int64_t end = count * static_cast<int64_t>(sizeof(T) / sizeof(Part));
  Part bad = 0;  // stays 0 unless an Inf or NaN makes it NaN
#pragma omp simd reduction(+ : bad)
  for (int64_t i = 0; i < end; ++i) bad += parts[i] * Part{0};
  return !std::isnan(bad);
}

// Largest entry of column j of U; with the unit diagonal in U, of diag(L) U.
template <class T>
CROUT_VECTOR_CLONES double ColumnMax(const MatrixView<T>& lu, bool unit_in_u, int64_t j) {
  const T* column = &lu(0, j);
  if (!AllFinite(column, lu.rows)) return kNan;
  if (!unit_in_u) return MaxAbs(column, j + 1);
  double max = Modulus(lu(j, j));
  for (int64_t i = 0; i < j; ++i) {
    max = std::max(max, Modulus(ToFloat64(lu(i, i)) * ToFloat64(column[i])));
  }
  return max;
}

// Returns a power of two to scale a complex pivot with before it is divided by its modulus. The
// modulus of subnormal numbers is inexact.
template <class T>
double PivotScale(T pivot) {
  return kIsComplex<T> ? NormalizingScale(LargestPart(pivot)) : 1;
}

template <class T>
void ComputeDeterminant(const MatrixView<T>& lu, const int64_t* ipiv, FactorStats& stats) {
  bool negative = false;  // an odd number of interchanges
  int64_t exponent = 0;   // sum over all scales
  WideType<T> sign = 1;
  for (int64_t j = 0; j < lu.rows; ++j) {
    const WideType<T> pivot = ToFloat64(lu(j, j));
    const double scale = PivotScale(pivot);
    const WideType<T> d = pivot * scale;
    const double modulus = Modulus(d);
    if (modulus == 0) {
      stats.det_sign = 0;
      stats.det_log_abs = -std::numeric_limits<double>::infinity();
      return;
    }
    sign *= d / modulus;
    if (ipiv != nullptr) negative ^= ipiv[j] != j + 1;
    stats.det_log_abs += std::log(modulus);
    exponent += std::ilogb(scale);
  }
  stats.det_log_abs -= static_cast<double>(exponent) * std::log(2.0);
  // Rounding errors leave the modulus of `sign` only near 1.
  sign /= negative ? -Modulus(sign) : Modulus(sign);
  stats.det_sign = std::real(sign);
  stats.det_sign_imaginary = std::imag(sign);
}

template <class T>
void TakePivots(const MatrixView<T>& lu, FactorStats& stats) {
  stats.min_pivot = std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < lu.rows; ++j) {
    const double modulus = Modulus(ToFloat64(lu(j, j)));
    stats.min_pivot = std::min(stats.min_pivot, modulus);
    stats.max_pivot = std::max(stats.max_pivot, modulus);
  }
}

template <class T>
FactorStats Compute(int cores, const MatrixView<T>& lu, bool unit_in_u, const int64_t* ipiv) {
  FactorStats stats;
  std::array<double, kColumnsPerPass> column_max;
  for (int64_t begin = 0; begin < lu.cols; begin += kColumnsPerPass) {
    const int64_t count = std::min(kColumnsPerPass, lu.cols - begin);
    ParallelFor(cores, count,
                [&](int64_t j) { column_max[j] = ColumnMax(lu, unit_in_u, begin + j); });
    for (int64_t j = 0; j < count; ++j) {
      if (std::isnan(column_max[j])) stats.max_abs_u = kNan;
      if (column_max[j] > stats.max_abs_u) stats.max_abs_u = column_max[j];
    }
  }
  TakePivots(lu, stats);
  ComputeDeterminant(lu, ipiv, stats);
  return stats;
}

}  // namespace

FactorStats ComputeFactorStats(int cores, const AnyMatrix& lu, bool unit_in_u,
                               const int64_t* ipiv) {
  if (lu.rows == 0) return FactorStats();
  return DispatchDType(lu.dtype, [&](auto tag) {
    return Compute(cores, lu.As<typename decltype(tag)::type>(), unit_in_u, ipiv);
  });
}

FactorStats ComputePivotStats(const AnyMatrix& lu) {
  FactorStats stats;
  if (lu.rows == 0) return stats;
  DispatchDType(lu.dtype,
                [&](auto tag) { TakePivots(lu.As<typename decltype(tag)::type>(), stats); });
  return stats;
}

}  // namespace crout::host
