// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/matrix_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/lanes.h"
#include "kernels/host/ops/vector_clones.h"
#include "kernels/numerics/normalizing_scale.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

constexpr int64_t kRowBlock = 512;

double Larger(double a, double b) { return a > b ? a : b; }

// largest[i] := max(largest[i], |column[i]|)
template <class T>
CROUT_VECTOR_CLONES void UpdateMaxima(const T* column, int64_t count, double* largest) {
  for (int64_t i = 0; i < count; ++i) {
    largest[i] = Larger(LargestPart(ToFloat64(column[i])), largest[i]);
  }
}

template <class T>
CROUT_VECTOR_CLONES double LargestScaled(const T* column, const double* scales, int64_t count) {
  return MaxInLanes<double>(
      count, [column, scales](int64_t i) { return LargestPart(ToFloat64(column[i])) * scales[i]; });
}

template <class T>
void RowMaxima(int cores, const MatrixView<T>& a, double* largest) {
  const int64_t blocks = (a.rows + kRowBlock - 1) / kRowBlock;
  ParallelFor(cores, blocks, [&](int64_t block) {
    const int64_t begin = block * kRowBlock;
    const int64_t end = std::min(begin + kRowBlock, a.rows);
    std::fill(largest + begin, largest + end, 0.0);
    for (int64_t j = 0; j < a.cols; ++j) {
      UpdateMaxima(&a(begin, j), end - begin, largest + begin);
    }
  });
}

template <class T>
void ColumnMaxima(int cores, const MatrixView<T>& a, const double* row, double* largest) {
  ParallelFor(cores, a.cols, [&](int64_t j) { largest[j] = LargestScaled(&a(0, j), row, a.rows); });
}

template <class T>
void RowMaxima(int cores, const SparseView<T>& a, double* largest) {
  ParallelFor(cores, a.n, [&](int64_t i) {
    double max = 0;
    a.ForRow(Op::kNone, i, [&](int64_t, T v) { max = Larger(LargestPart(ToFloat64(v)), max); });
    largest[i] = max;
  });
}

template <class T>
void ColumnMaxima(int cores, const SparseView<T>& a, const double* row, double* largest) {
  ParallelFor(cores, a.n, [&](int64_t j) {
    double max = 0;
    a.ForRow(Op::kTranspose, j,
             [&](int64_t i, T v) { max = Larger(LargestPart(ToFloat64(v)) * row[i], max); });
    largest[j] = max;
  });
}

// Smallest over largest element, both clamped against underflow and overflow as in geequb.
double Condition(const double* largest, int64_t count) {
  if (count == 0) return 1;
  const auto [min, max] = std::minmax_element(largest, largest + count);
  const double safe = std::numeric_limits<double>::min();
  return std::max(*min, safe) / std::min(std::max(*max, safe), 1 / safe);
}

int64_t FirstZero(const double* largest, int64_t count) {
  const double* zero = std::find(largest, largest + count, 0.0);
  return zero == largest + count ? 0 : zero - largest + 1;
}

// Computes scales of a matrix with this shape.
template <class Matrix>
ScaleStats Compute(int cores, const Matrix& a, int64_t rows, int64_t cols, double* row,
                   double* col) {
  ScaleStats stats;
  RowMaxima(cores, a, row);
  if (rows > 0) stats.max_abs = *std::max_element(row, row + rows);
  stats.row_condition = Condition(row, rows);
  stats.zero_line = FirstZero(row, rows);
  std::transform(row, row + rows, row, [](double largest) { return NormalizingScale(largest); });

  ColumnMaxima(cores, a, row, col);
  stats.col_condition = Condition(col, cols);
  if (const int64_t zero_col = FirstZero(col, cols); stats.zero_line == 0 && zero_col > 0) {
    stats.zero_line = rows + zero_col;
  }
  std::transform(col, col + cols, col, [](double largest) { return NormalizingScale(largest); });
  return stats;
}

}  // namespace

ScaleStats ComputeScales(int cores, const AnyMatrix& a, double* row, double* col) {
  return DispatchDType(a.dtype, [&](auto tag) {
    return Compute(cores, a.As<typename decltype(tag)::type>(), a.rows, a.cols, row, col);
  });
}

ScaleStats ComputeScales(int cores, const AnySparse& a, double* row, double* col) {
  return DispatchDType(a.dtype, [&](auto tag) {
    return Compute(cores, a.As<typename decltype(tag)::type>(), a.n, a.n, row, col);
  });
}

void ComputeColumnScales(int cores, const AnyMatrix& in, const double* row, int exponent,
                         double* down, double* up) {
  // Treats real and imaginary parts as separate numbers.
  const int parts = IsComplex(in.dtype) ? 2 : 1;
  ParallelFor(cores, in.cols, [&](int64_t j) {
    const double* const column = reinterpret_cast<const double*>(in.data) + j * in.ld * parts;
    double largest = 0;
    for (int64_t i = 0; i < in.rows * parts; ++i) {
      const double v = std::abs(row == nullptr ? column[i] : row[i / parts] * column[i]);
      if (!(v <= largest)) largest = v;
      if (std::isnan(v)) break;
    }
    down[j] = NormalizingScale(largest, exponent);
    up[j] = 1 / down[j];
  });
}

}  // namespace crout::host
