// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/irr_lu/small_lu.h"

#include <algorithm>
#include <complex>
#include <utility>

#include "kernels/host/ops/pivot_column.h"
#include "kernels/host/ops/vector_clones.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

constexpr int kPanel = 4;           // columns factored before those to their right are updated
constexpr int kColumnsPerPass = 2;  // columns right of a panel updated in one pass over it

// Factors kWidth columns from element (k, k) on. Exchanges rows in these columns only.
template <int kWidth, class T>
CROUT_PART_OF_CLONES void FactorPanel(const MatrixView<T>& a, int64_t k, int64_t* ipiv,
                                      int64_t& info) {
  for (int64_t d = k; d < k + kWidth; ++d) {
    T* const x = &a(0, d);
    const int64_t p = PivotRow(x, d, a.rows);
    ipiv[d] = p + 1;
    if (x[p] == T{0}) {
      if (info == 0) info = d + 1;
    } else {
      for (int64_t j = k; j < k + kWidth; ++j) std::swap(a(d, j), a(p, j));
      DivideByPivot(x + d + 1, a.rows - d - 1, x[d]);
    }
    for (int64_t j = d + 1; j < k + kWidth; ++j) {
      T* const y = &a(0, j);
      const T u = y[d];
#pragma omp simd
      for (int64_t i = d + 1; i < a.rows; ++i) y[i] -= x[i] * u;
    }
  }
}

template <int kWidth, class T>
CROUT_PART_OF_CLONES void ExchangeRows(const int64_t* ipiv, int64_t k, T* column) {
  for (int64_t d = k; d < k + kWidth; ++d) std::swap(column[d], column[ipiv[d] - 1]);
}

// Updates kColumns columns from j on, right of the panel at k: exchanges rows, solves for U and
// subtracts L U from the rest.
template <int kWidth, int kColumns, class T>
CROUT_PART_OF_CLONES void UpdateColumns(const MatrixView<T>& a, int64_t k, const int64_t* ipiv,
                                        int64_t j) {
  T u[kColumns][kWidth];
  for (int c = 0; c < kColumns; ++c) {
    T* const column = &a(0, j + c);
    ExchangeRows<kWidth>(ipiv, k, column);
    for (int q = 0; q < kWidth; ++q) {
      T sum = column[k + q];
      for (int p = 0; p < q; ++p) sum -= a(k + q, k + p) * u[c][p];
      column[k + q] = u[c][q] = sum;
    }
  }
  const T* const l = &a(0, k);
  T* const right = &a(0, j);
#pragma omp simd
  for (int64_t i = k + kWidth; i < a.rows; ++i) {
    for (int c = 0; c < kColumns; ++c) {
      T sum = right[i + c * a.ld];
      for (int q = 0; q < kWidth; ++q) sum -= l[i + q * a.ld] * u[c][q];
      right[i + c * a.ld] = sum;
    }
  }
}

template <int kWidth, class T>
CROUT_PART_OF_CLONES void Step(const MatrixView<T>& a, int64_t k, int64_t* ipiv, int64_t& info) {
  FactorPanel<kWidth>(a, k, ipiv, info);
  for (T* left = a.data; left != &a(0, k); left += a.ld) ExchangeRows<kWidth>(ipiv, k, left);
  int64_t j = k + kWidth;
  for (; j + kColumnsPerPass <= a.cols; j += kColumnsPerPass)
    UpdateColumns<kWidth, kColumnsPerPass>(a, k, ipiv, j);
  for (; j < a.cols; ++j) UpdateColumns<kWidth, 1>(a, k, ipiv, j);
}

template <class T>
CROUT_VECTOR_CLONES int64_t Factor(const MatrixView<T>& a, int64_t* ipiv) {
  const int64_t diagonal = std::min(a.rows, a.cols);
  int64_t info = 0;
  int64_t k = 0;
  for (; k + kPanel <= diagonal; k += kPanel) Step<kPanel>(a, k, ipiv, info);
  for (; k < diagonal; ++k) Step<1>(a, k, ipiv, info);
  return info;
}

}  // namespace

template <class T>
int64_t FactorSmall(const MatrixView<T>& a, int64_t* ipiv) {
  return Factor(a, ipiv);
}

template int64_t FactorSmall(const MatrixView<float>&, int64_t*);
template int64_t FactorSmall(const MatrixView<double>&, int64_t*);
template int64_t FactorSmall(const MatrixView<std::complex<float>>&, int64_t*);
template int64_t FactorSmall(const MatrixView<std::complex<double>>&, int64_t*);

}  // namespace crout::host
