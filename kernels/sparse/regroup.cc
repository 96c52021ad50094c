// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/regroup.h"

#include <utility>

#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"
#include "kernels/sparse/symbolic.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

FrontTree MakeTree(const Analysis& analysis, const std::vector<int32_t>& eliminated) {
  std::vector<int32_t> number(analysis.fronts(), -1);
  FrontTree tree;
  tree.counted = false;
  tree.first_position = {0};
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    if (eliminated[f] == 0) continue;
    number[f] = static_cast<int32_t>(tree.parent.size());
    tree.first_position.push_back(tree.first_position.back() + eliminated[f]);
    int32_t parent = analysis.parent[f];
    while (parent != -1 && eliminated[parent] == 0) parent = analysis.parent[parent];
    tree.parent.push_back(parent);  // renumbered below
    tree.bordered.push_back(static_cast<int32_t>(analysis.bordered(f)));
  }
  for (int32_t& parent : tree.parent) parent = parent == -1 ? -1 : number[parent];
  return tree;
}

}  // namespace

absl::Status CheckAnalysed(const Analysis& analysis, const AnySparse& a, StopRequested stop) {
  StopCounter counter(stop);
  const bool is_same = a.n == analysis.n && a.nonzeros == analysis.nonzeros &&
                       analysis.unmatched_row < 0 && PatternDigest(a, counter) == analysis.pattern;
  CROUT_RETURN_IF_ERROR(counter.status());
  if (is_same) return absl::OkStatus();
  return absl::InvalidArgumentError("the matrix does not have the pattern that was analyzed");
}

absl::StatusOr<Analysis> Regroup(const Analysis& analysis, const AnySparse& a,
                                 Regrouping&& regrouping, const AnalysisOptions& options,
                                 StopRequested stop) {
  const FrontTree tree = MakeTree(analysis, regrouping.eliminated);
  Analysis regrouped;
  regrouped.n = analysis.n;
  regrouped.nonzeros = analysis.nonzeros;
  regrouped.pattern = analysis.pattern;
  regrouped.kept = analysis.kept;
  regrouped.matched = analysis.matched;
  regrouped.ordering = analysis.ordering;
  regrouped.pivot_threshold = analysis.pivot_threshold;
  regrouped.row_scale = analysis.row_scale;
  regrouped.column_scale = analysis.column_scale;
  regrouped.row_order = std::move(regrouping.rows);
  regrouped.column_order = std::move(regrouping.columns);
  std::vector<int32_t> column_of_row(analysis.n);
  for (int64_t k = 0; k < analysis.n; ++k) {
    column_of_row[regrouped.row_order[k]] = regrouped.column_order[k];
  }
  CROUT_RETURN_IF_ERROR(options.Claim(MaxNeighbourBytes(a.nonzeros)));
  CROUT_ASSIGN_OR_RETURN(const Graph graph, SymmetrizedGraph(a, column_of_row.data(), stop));
  const auto claim = [&](size_t bytes) { return options.Claim(graph.neighbour_bytes() + bytes); };
  CROUT_RETURN_IF_ERROR(claim(SymbolicBytes(tree)));
  CROUT_RETURN_IF_ERROR(FillSymbolic(graph, tree, claim, stop, regrouped));
  return regrouped;
}

}  // namespace crout
