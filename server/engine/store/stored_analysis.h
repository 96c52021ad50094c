// SPDX-License-Identifier: Apache-2.0

// The arrays of the analysis of a sparse factor, as they are stored with the factor.
#ifndef CROUT_SERVER_ENGINE_STORE_STORED_ANALYSIS_H_
#define CROUT_SERVER_ENGINE_STORE_STORED_ANALYSIS_H_

#include "absl/status/status.h"
#include "kernels/sparse/analysis.h"

namespace crout {

// Calls visit(name, array) for each array of `analysis`, which may be const.
template <class AnyAnalysis, class Visit>
void ForEachArray(AnyAnalysis& analysis, Visit&& visit) {
  visit("analysis.row_order", analysis.row_order);
  visit("analysis.column_order", analysis.column_order);
  visit("analysis.row_scale", analysis.row_scale);
  visit("analysis.column_scale", analysis.column_scale);
  visit("analysis.first_position", analysis.first_position);
  visit("analysis.border_start", analysis.border_start);
  visit("analysis.parent", analysis.parent);
  visit("analysis.child_start", analysis.child_start);
  visit("analysis.child", analysis.child);
  visit("analysis.border", analysis.border);
  visit("analysis.place_in_parent", analysis.place_in_parent);
  visit("analysis.level_start", analysis.level_start);
  visit("analysis.level_front", analysis.level_front);
  visit("analysis.factor_start", analysis.factor_start);
  visit("analysis.contribution_start", analysis.contribution_start);
  visit("analysis.level_contribution_entries", analysis.level_contribution_entries);
}

// Checks lengths, orders and ranges of the arrays, so that no index in them is out of range.
// DATA_LOSS if one is not possible.
absl::Status CheckArrays(const Analysis& analysis);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_STORED_ANALYSIS_H_
