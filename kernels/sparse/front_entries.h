// SPDX-License-Identifier: Apache-2.0

// Maps the entries of A to elements of the fronts during assembly.
#ifndef CROUT_KERNELS_SPARSE_FRONT_ENTRIES_H_
#define CROUT_KERNELS_SPARSE_FRONT_ENTRIES_H_

#include <algorithm>
#include <cstdint>

#include "kernels/sparse/analysis.h"
#include "kernels/sparse_view.h"

namespace crout {

// Inverses of Analysis::row_order and column_order, n elements each.
struct Positions {
  const int32_t* of_row = nullptr;
  const int32_t* of_column = nullptr;
};

inline Positions PlacePositions(const Analysis& analysis, int32_t* of_row, int32_t* of_column) {
  for (int64_t k = 0; k < analysis.n; ++k) {
    of_row[analysis.row_order[k]] = static_cast<int32_t>(k);
    of_column[analysis.column_order[k]] = static_cast<int32_t>(k);
  }
  return {of_row, of_column};
}

// Calls visit(e, j, target) for each entry of A that front f eliminates and that lies in columns
// [begin, end) of the front's d1 + d2. `e` is the entry's index in SparseView::value and `j` its
// column in A. `target` is the element of the factor whose initial value is the scaled entry:
//   factor_start[f] <= target < factor_start[f + 1].
// Targets are distinct. Elements without an entry start as 0. Entries without a place in the front
// are skipped; they occur only if the pattern was not analyzed.
template <class T, class Visit>
void ForFrontEntries(const Analysis& analysis, const SparseView<T>& a, const Positions& positions,
                     int64_t f, int64_t begin, int64_t end, const Visit& visit) {
  const int64_t d1 = analysis.eliminated(f);
  const int64_t size = d1 + analysis.bordered(f);
  const int64_t first = analysis.first_position[f];
  const int32_t* const border = analysis.border.data() + analysis.border_start[f];
  const int32_t* const border_end = analysis.border.data() + analysis.border_start[f + 1];
  // Place of a position among the front's d1 + d2; -1 if the front does not have it.
  const auto place = [&](int64_t position) -> int64_t {
    if (position < first + d1) return position - first;
    const int32_t* const at = std::lower_bound(border, border_end, position);
    return at != border_end && *at == position ? d1 + (at - border) : -1;
  };
  const int64_t panel = analysis.factor_start[f];
  for (int64_t l = begin; l < std::min(end, d1); ++l) {
    const int32_t j = analysis.column_order[first + l];
    for (int64_t e = a.column_start[j]; e < a.column_start[j + 1]; ++e) {
      const int64_t k = positions.of_row[a.row[e]];
      if (k < first) continue;  // A descendant eliminates this entry.
      if (const int64_t at = place(k); at >= 0) visit(e, j, panel + l * size + at);
    }
  }
  if (end <= std::max(begin, d1)) return;
  const int64_t u12 = panel + size * d1;
  // Range of border positions. Skips entries outside it before the binary search.
  const int64_t least = border[std::max(begin, d1) - d1];
  const int64_t most = border[end - 1 - d1];
  for (int64_t k = 0; k < d1; ++k) {
    const int32_t i = analysis.row_order[first + k];
    for (int64_t e = a.row_start[i]; e < a.row_start[i + 1]; ++e) {
      const int64_t l = positions.of_column[a.column[e]];
      if (l < least || l > most) continue;
      const int64_t at = place(l);
      if (at < 0) continue;
      visit(a.position[e], a.column[e], u12 + (at - d1) * d1 + k);
    }
  }
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_FRONT_ENTRIES_H_
