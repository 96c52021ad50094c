// SPDX-License-Identifier: Apache-2.0

// Threshold pivoting in one dense front. Columns without an acceptable pivot stay uneliminated.
#ifndef CROUT_KERNELS_SPARSE_PIVOT_SEARCH_H_
#define CROUT_KERNELS_SPARSE_PIVOT_SEARCH_H_

#include <cstdint>
#include <vector>

namespace crout {

// A square front, column-major, with the position of each row and column. Pivots are chosen among
// the first `candidates` rows and columns; the rest is the front's border.
template <class T>
struct TrialFront {
  int64_t candidates = 0;
  std::vector<int32_t> rows;
  std::vector<int32_t> columns;
  std::vector<T> values;

  int64_t size() const { return static_cast<int64_t>(rows.size()); }
};

// A pivot is acceptable if its modulus is at least `threshold` times the largest in the first
// `eliminated` rows of its column, and greater than least[position of the column].
struct PivotAcceptance {
  double threshold = 0;
  int64_t eliminated = 0;
  const double* least = nullptr;
};

// Eliminates candidate columns until none has an acceptable pivot. Returns the number e of
// eliminated columns. The pivot of a column is its largest candidate. Columns without an acceptable
// pivot are tried again after the others. Rows and columns are exchanged: the first e of `rows` and
// `columns` are the pivots, in order. Elements in rows and columns from e on are the Schur
// complement; all others are undefined.
template <class T>
int64_t EliminateAcceptable(const PivotAcceptance& rule, TrialFront<T>& front);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_PIVOT_SEARCH_H_
