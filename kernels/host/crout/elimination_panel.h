// SPDX-License-Identifier: Apache-2.0

// Gaussian elimination of one panel, the unblocked step of blocked methods.
#ifndef CROUT_KERNELS_HOST_CROUT_ELIMINATION_PANEL_H_
#define CROUT_KERNELS_HOST_CROUT_ELIMINATION_PANEL_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/matrix.h"
#include "kernels/scalar.h"

namespace crout::host {

// Returns the row of the first largest element in rows [begin, end) of `column`. Compares by Abs1,
// as LAPACK's pivoting does.
template <class T>
int64_t LargestRow(const T* column, int64_t begin, int64_t end) {
  const T* largest =
      std::max_element(column + begin, column + end, [](T x, T y) { return Abs1(x) < Abs1(y); });
  return largest - column;
}

// Exchanges rows k and ipiv[k] - 1 of a column, for k = begin, ..., end - 1 in order.
template <class T>
void InterchangeRows(const int64_t* ipiv, int64_t begin, int64_t end, T* column) {
  for (int64_t k = begin; k < end; ++k) {
    if (ipiv[k] - 1 != k) std::swap(column[k], column[ipiv[k] - 1]);
  }
}

// Factors columns [begin, end) of `a` from row `begin` down, with partial pivoting and the unit
// diagonal in L. Exchanges rows in these columns only. Sets ipiv[begin, end) to 1-based rows of
// `a`. Returns 0, or the 1-based index of the first exactly zero pivot. The column of L below a
// zero pivot is zero.
template <class T>
int64_t EliminatePanel(const MatrixView<T>& a, int64_t begin, int64_t end, int64_t* ipiv) {
  int64_t info = 0;
  for (int64_t k = begin; k < end; ++k) {
    T* column = &a(0, k);
    InterchangeRows(ipiv, begin, k, column);
    for (int64_t m = begin; m < k; ++m) {
      const T* l = &a(0, m);
      const T u = column[m];
      for (int64_t i = m + 1; i < a.rows; ++i) column[i] -= l[i] * u;
    }
    const int64_t p = LargestRow(column, k, a.rows);
    ipiv[k] = p + 1;
    for (int64_t j = begin; j <= k; ++j) std::swap(a(k, j), a(p, j));
    if (column[k] == T{0}) {
      if (info == 0) info = k + 1;
      continue;
    }
    for (int64_t i = k + 1; i < a.rows; ++i) column[i] /= column[k];
  }
  return info;
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_CROUT_ELIMINATION_PANEL_H_
