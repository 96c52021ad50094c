// Where A's own entries begin in the fronts, found as they are put there.
#ifndef CROUT_KERNELS_SPARSE_FRONT_ENTRIES_H_
#define CROUT_KERNELS_SPARSE_FRONT_ENTRIES_H_

#include <algorithm>
#include <cstdint>

#include "kernels/sparse/analysis.h"
#include "kernels/sparse_view.h"

namespace crout {

// The inverses of Analysis::row_order and column_order, n numbers each.
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

// Calls visit(e, j, target) for each entry that front f eliminates and that is in the columns
// [begin, end) of its d1 + d2: e is its index in SparseView::value, j its column in A, and `target`
// the element of the factor, of which factor_start[f] <= target < factor_start[f + 1], that starts
// as its value, scaled. No two have the same target, and elements that are no entry's start as 0.
// An entry that the front has no place for, as of a pattern that was not analysed, is left out.
template <class T, class Visit>
void ForFrontEntries(const Analysis& analysis, const SparseView<T>& a, const Positions& positions,
                     int64_t f, int64_t begin, int64_t end, const Visit& visit) {
  const int64_t d1 = analysis.eliminated(f);
  const int64_t size = d1 + analysis.bordered(f);
  const int64_t first = analysis.first_position[f];
  const int32_t* const border = analysis.border.data() + analysis.border_start[f];
  const int32_t* const border_end = analysis.border.data() + analysis.border_start[f + 1];
  // Of the d1 + d2; -1 of a position that is not the front's.
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
      if (k < first) continue;  // A descendant eliminates it.
      if (const int64_t at = place(k); at >= 0) visit(e, j, panel + l * size + at);
    }
  }
  if (end <= std::max(begin, d1)) return;
  const int64_t u12 = panel + size * d1;
  // A window of the border: what is outside it is left before it is searched for.
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
