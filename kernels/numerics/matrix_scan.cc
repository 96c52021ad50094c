// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/matrix_scan.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/numerics/normalizing_scale.h"
#include "kernels/scalar.h"

namespace crout {
namespace {

// A line is a column of a column-major matrix, or a row of a row-major one.
struct Sums {
  std::vector<double> of_lines;
  std::vector<double> across;
};

template <class T>
int64_t FindNonFinite(const T* a, int64_t count) {
  const T* const found = std::find_if(a, a + count, [](T x) { return !IsFinite(x); });
  return found == a + count ? -1 : found - a;
}

template <class T>
Sums AddModuli(const T* a, int64_t lines, int64_t length, double* max_abs) {
  Sums sums{std::vector<double>(lines), std::vector<double>(length)};
  double largest = 0;
  for (int64_t line = 0; line < lines; ++line) {
    const T* const x = a + line * length;
    double sum = 0;
    for (int64_t k = 0; k < length; ++k) {
      const double modulus = Modulus(x[k]);
      sum += modulus;
      sums.across[k] += modulus;
      largest = std::max(largest, modulus);
    }
    sums.of_lines[line] = sum;
  }
  *max_abs = largest;
  return sums;
}

double Largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

// Returns smallest over largest, as geequb does.
double Condition(const std::vector<double>& largest) {
  if (largest.empty()) return 1;
  const auto [min, max] = std::minmax_element(largest.begin(), largest.end());
  constexpr double kSafe = std::numeric_limits<double>::min();
  return std::max(*min, kSafe) / std::min(std::max(*max, kSafe), 1 / kSafe);
}

// 1-based; 0 if there is none.
int64_t FirstZero(const std::vector<double>& largest) {
  const auto zero = std::find(largest.begin(), largest.end(), 0.0);
  return zero == largest.end() ? 0 : zero - largest.begin() + 1;
}

// Calls visit(line, k, magnitude) for each element, with k its index within the line.
template <class T, class Visit>
void ForEach(const T* a, int64_t lines, int64_t length, Visit visit) {
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t k = 0; k < length; ++k) {
      visit(line, k, static_cast<double>(LargestPart(ToFloat64(a[line * length + k]))));
    }
  }
}

template <class T>
ScaleStats ScanScales(const T* a, const PackedMatrix& shape) {
  const bool by_columns = shape.layout == Layout::kColumnMajor;
  const int64_t lines = by_columns ? shape.cols : shape.rows;
  const int64_t length = by_columns ? shape.rows : shape.cols;
  std::vector<double> rows(shape.rows);
  std::vector<double> cols(shape.cols);
  ForEach(a, lines, length, [&](int64_t line, int64_t k, double magnitude) {
    double& row = rows[by_columns ? k : line];
    row = std::max(row, magnitude);
  });
  ScaleStats stats;
  stats.max_abs = Largest(rows);
  stats.row_condition = Condition(rows);
  stats.zero_line = FirstZero(rows);
  std::transform(rows.begin(), rows.end(), rows.begin(),
                 [](double largest) { return NormalizingScale(largest); });
  ForEach(a, lines, length, [&](int64_t line, int64_t k, double magnitude) {
    double& col = cols[by_columns ? line : k];
    col = std::max(col, magnitude * rows[by_columns ? k : line]);
  });
  stats.col_condition = Condition(cols);
  const int64_t zero_col = FirstZero(cols);
  if (stats.zero_line == 0 && zero_col > 0) stats.zero_line = shape.rows + zero_col;
  return stats;
}

template <class T>
MatrixScan Scan(const T* a, const PackedMatrix& shape) {
  MatrixScan scan;
  MatrixStats& stats = scan.stats;
  stats.first_non_finite = FindNonFinite(a, shape.rows * shape.cols);
  if (stats.first_non_finite >= 0) return scan;
  const bool by_columns = shape.layout == Layout::kColumnMajor;
  const Sums sums = AddModuli(a, by_columns ? shape.cols : shape.rows,
                              by_columns ? shape.rows : shape.cols, &stats.max_abs);
  stats.norm_one = Largest(by_columns ? sums.of_lines : sums.across);
  stats.norm_inf = Largest(by_columns ? sums.across : sums.of_lines);
  scan.scale = ScanScales(a, shape);
  return scan;
}

}  // namespace

MatrixScan ScanMatrix(const PackedMatrix& a) {
  return DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Scan(reinterpret_cast<const T*>(a.data), a);
  });
}

int64_t FirstNonFinite(const PackedMatrix& a) {
  return DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return FindNonFinite(reinterpret_cast<const T*>(a.data), a.rows * a.cols);
  });
}

}  // namespace crout
