// SPDX-License-Identifier: Apache-2.0

// Postpone (analysis.h) and Regroup (delayed_pivots.h): delayed pivots by a modified tree. The
// delays happen between two factorizations, not during one, so every factorization has fixed sizes
// from the start.
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/delayed_pivots.h"
#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"
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

// Front that eliminates each position.
std::vector<int32_t> FrontOfEach(const Analysis& analysis) {
  std::vector<int32_t> front(analysis.n);
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    for (int32_t k = analysis.first_position[f]; k < analysis.first_position[f + 1]; ++k) {
      front[k] = static_cast<int32_t>(f);
    }
  }
  return front;
}

// Rows by position. In fronts with postponed positions the rows are interchanged as in the
// factorization: a postponed column moves together with the row in which it found no pivot.
absl::StatusOr<std::vector<int32_t>> InterchangedRows(const Analysis& analysis,
                                                      std::span<const int32_t> positions,
                                                      std::span<const int32_t> interchanges,
                                                      const std::vector<int32_t>& front) {
  std::vector<int32_t> row = analysis.row_order;
  int32_t done = -1;
  for (const int32_t k : positions) {
    if (std::exchange(done, front[k]) == front[k]) continue;
    const int32_t first = analysis.first_position[front[k]];
    const int64_t d1 = analysis.eliminated(front[k]);
    for (int64_t i = 0; i < d1; ++i) {
      const int32_t other = interchanges[first + i];
      if (other < i || other >= d1) {
        return absl::InvalidArgumentError("the interchanges do not match the analysis");
      }
      std::swap(row[first + i], row[first + other]);
    }
  }
  return row;
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
  Analysis result;
  result.n = analysis.n;
  result.nonzeros = analysis.nonzeros;
  result.pattern = analysis.pattern;
  result.kept = analysis.kept;
  result.matched = analysis.matched;
  result.regrouped = true;
  result.ordering = analysis.ordering;
  result.pivot_threshold = analysis.pivot_threshold;
  result.row_scale = analysis.row_scale;
  result.column_scale = analysis.column_scale;
  result.row_order = std::move(regrouping.rows);
  result.column_order = std::move(regrouping.columns);
  std::vector<int32_t> column_of_row(analysis.n);
  for (int64_t k = 0; k < analysis.n; ++k) {
    column_of_row[result.row_order[k]] = result.column_order[k];
  }
  CROUT_RETURN_IF_ERROR(options.Claim(MaxNeighbourBytes(a.nonzeros)));
  CROUT_ASSIGN_OR_RETURN(const Graph graph, SymmetrizedGraph(a, column_of_row.data(), stop));
  const auto claim = [&](size_t bytes) { return options.Claim(graph.neighbour_bytes() + bytes); };
  CROUT_RETURN_IF_ERROR(claim(SymbolicBytes(tree)));
  CROUT_RETURN_IF_ERROR(FillSymbolic(graph, tree, claim, stop, result));
  return result;
}

absl::StatusOr<Analysis> Postpone(const Analysis& analysis, const AnySparse& a,
                                  std::span<const int32_t> positions,
                                  std::span<const int32_t> interchanges,
                                  const AnalysisOptions& options, StopRequested stop) {
  CROUT_RETURN_IF_ERROR(CheckAnalysed(analysis, a, stop));
  if (std::ssize(interchanges) != a.n) {
    return absl::InvalidArgumentError("the interchanges do not match the analysis");
  }
  std::vector<int32_t> front = FrontOfEach(analysis);
  for (const int32_t k : positions) {
    if (k < 0 || k >= analysis.n)
      return absl::InvalidArgumentError(
          absl::StrCat("position ", k, " is outside the matrix of order ", analysis.n));
  }
  CROUT_ASSIGN_OR_RETURN(const std::vector<int32_t> rows,
                         InterchangedRows(analysis, positions, interchanges, front));
  for (const int32_t k : positions) {
    const int32_t parent = analysis.parent[front[k]];
    const bool into_kept = analysis.kept > 0 && parent == analysis.fronts() - 1;
    if (parent != -1 && !into_kept) front[k] = parent;
  }
  Regrouping regrouping;
  regrouping.rows.resize(analysis.n);
  regrouping.columns.resize(analysis.n);
  regrouping.eliminated.resize(analysis.fronts());
  for (const int32_t f : front) ++regrouping.eliminated[f];
  std::vector<int32_t> next(analysis.fronts());
  std::exclusive_scan(regrouping.eliminated.begin(), regrouping.eliminated.end(), next.begin(), 0);
  for (int64_t k = 0; k < analysis.n; ++k) {
    const int32_t position = next[front[k]]++;
    regrouping.rows[position] = rows[k];
    regrouping.columns[position] = analysis.column_order[k];
  }
  return Regroup(analysis, a, std::move(regrouping), options, stop);
}

}  // namespace crout
