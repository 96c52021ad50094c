// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/stored_analysis.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace crout {
namespace {

// Returns true if the array has `size` elements, all from 0 to `end` - 1.
bool AreIndices(const std::vector<int32_t>& array, size_t size, int64_t end) {
  return array.size() == size &&
         std::all_of(array.begin(), array.end(), [&](int64_t i) { return i >= 0 && i < end; });
}

// Returns true if the array has `groups` + 1 elements that ascend from 0 to `end`.
template <class Int>
bool AreStarts(const std::vector<Int>& array, size_t groups, int64_t end) {
  return array.size() == groups + 1 && array.front() == 0 && array.back() == end &&
         std::is_sorted(array.begin(), array.end());
}

bool AreScales(const std::vector<double>& array, size_t n) {
  return array.empty() || array.size() == n;
}

bool IsTree(const Analysis& a) {
  const auto fronts = static_cast<size_t>(a.fronts());
  const auto levels = static_cast<size_t>(a.levels());
  if (!AreStarts(a.first_position, fronts, a.n) ||
      !AreStarts(a.border_start, fronts, static_cast<int64_t>(a.border.size())) ||
      !AreStarts(a.child_start, fronts, static_cast<int64_t>(a.child.size())) ||
      !AreStarts(a.level_start, levels, a.fronts()) ||
      !AreStarts(a.factor_start, fronts, a.factor_entries()) ||
      !AreIndices(a.border, a.border.size(), a.n) ||
      !AreIndices(a.child, a.child.size(), a.fronts()) ||
      !AreIndices(a.level_front, fronts, a.fronts()) ||
      a.place_in_parent.size() != a.border.size() || a.contribution_start.size() != fronts) {
    return false;
  }
  for (int64_t f = 0; f < a.fronts(); ++f) {
    const int64_t parent = a.parent[f];
    if (parent != -1 && (parent <= f || parent >= a.fronts())) return false;
    if (parent == -1 && a.bordered(f) > 0) return false;
    const int64_t d1 = a.eliminated(f);
    const int64_t d2 = a.bordered(f);
    if (d1 + d2 > a.n) return false;  // The products below are then below 2^63.
    const int64_t entries = a.is_kept(f) ? 0 : d1 * (d1 + 2 * d2);
    if (a.factor_start[f + 1] - a.factor_start[f] < entries) return false;
    const int64_t size_of_parent = parent == -1 ? 0 : a.eliminated(parent) + a.bordered(parent);
    for (int64_t b = a.border_start[f]; b < a.border_start[f + 1]; ++b) {
      if (a.place_in_parent[b] < 0 || a.place_in_parent[b] >= size_of_parent) return false;
    }
  }
  return true;
}

}  // namespace

absl::Status CheckArrays(const Analysis& analysis) {
  const auto n = static_cast<size_t>(analysis.n);
  if (analysis.kept < 0 || analysis.kept > analysis.n) {
    return absl::DataLossError("the analysis of the stored factor is damaged");
  }
  const bool possible = analysis.unmatched_row >= 0
                            ? analysis.row_order.empty() && analysis.fronts() == 0
                            : AreIndices(analysis.row_order, n, analysis.n) &&
                                  AreIndices(analysis.column_order, n, analysis.n) &&
                                  AreScales(analysis.row_scale, n) &&
                                  AreScales(analysis.column_scale, n) && IsTree(analysis);
  if (possible) return absl::OkStatus();
  return absl::DataLossError("the analysis of the stored factor is damaged");
}

}  // namespace crout
