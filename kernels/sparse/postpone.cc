// Delayed pivots by another tree: what a method with delays would do on the way is done between two
// factorizations, so that every one of them has its sizes from the start.
#include <numeric>
#include <utility>

#include "kernels/sparse/analysis.h"
#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"
#include "kernels/sparse/symbolic.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// By position: the front that eliminates it.
std::vector<int32_t> FrontOfEach(const Analysis& analysis) {
  std::vector<int32_t> front(analysis.n);
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    for (int32_t k = analysis.first_position[f]; k < analysis.first_position[f + 1]; ++k) {
      front[k] = static_cast<int32_t>(f);
    }
  }
  return front;
}

// Rows by position, interchanged as the factorization did in the fronts where something is
// postponed: the row that a column had no pivot in goes with it.
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
        return absl::InvalidArgumentError("the interchanges are not those of such a factor");
      }
      std::swap(row[first + i], row[first + other]);
    }
  }
  return row;
}

// The tree with positions where `front` says, without fronts that have none left; `from`: the old
// position of each new one.
FrontTree MakeTree(const Analysis& analysis, const std::vector<int32_t>& front,
                   std::vector<int32_t>& from) {
  std::vector<int32_t> columns(analysis.fronts()), number(analysis.fronts(), -1);
  for (const int32_t f : front) ++columns[f];
  FrontTree tree;
  tree.counted = false;
  tree.first_position = {0};
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    if (columns[f] == 0) continue;
    number[f] = static_cast<int32_t>(tree.parent.size());
    tree.first_position.push_back(tree.first_position.back() + columns[f]);
    int32_t parent = analysis.parent[f];
    while (parent != -1 && columns[parent] == 0) parent = analysis.parent[parent];
    tree.parent.push_back(parent);  // renumbered below
    tree.bordered.push_back(static_cast<int32_t>(analysis.bordered(f)));
  }
  for (int32_t& parent : tree.parent) parent = parent == -1 ? -1 : number[parent];
  std::vector<int32_t> next(tree.first_position.begin(), tree.first_position.end());
  from.resize(analysis.n);
  for (int64_t k = 0; k < analysis.n; ++k) from[next[number[front[k]]]++] = static_cast<int32_t>(k);
  return tree;
}

}  // namespace

absl::StatusOr<Analysis> Postpone(const Analysis& analysis, const AnySparse& a,
                                  std::span<const int32_t> positions,
                                  std::span<const int32_t> interchanges,
                                  const AnalysisOptions& options, StopRequested stop) {
  if (a.n != analysis.n || a.nonzeros != analysis.nonzeros || analysis.unmatched_row >= 0 ||
      std::ssize(interchanges) != a.n || PatternDigest(a) != analysis.pattern) {
    return absl::InvalidArgumentError("the matrix is not the one that was analysed");
  }
  std::vector<int32_t> front = FrontOfEach(analysis);
  for (const int32_t k : positions) {
    if (k < 0 || k >= analysis.n) return absl::InvalidArgumentError("there is no such position");
  }
  CROUT_ASSIGN_OR_RETURN(const std::vector<int32_t> rows,
                         InterchangedRows(analysis, positions, interchanges, front));
  for (const int32_t k : positions) {
    const int32_t parent = analysis.parent[front[k]];
    const bool into_kept = analysis.kept > 0 && parent == analysis.fronts() - 1;
    if (parent != -1 && !into_kept) front[k] = parent;
  }
  std::vector<int32_t> from;
  FrontTree tree = MakeTree(analysis, front, from);
  Analysis postponed;
  postponed.n = analysis.n;
  postponed.nonzeros = analysis.nonzeros;
  postponed.pattern = analysis.pattern;
  postponed.kept = analysis.kept;
  postponed.matched = analysis.matched;
  postponed.ordering = analysis.ordering;
  postponed.row_scale = analysis.row_scale;
  postponed.column_scale = analysis.column_scale;
  postponed.row_order.resize(analysis.n);
  postponed.column_order.resize(analysis.n);
  std::vector<int32_t> column_of_row(analysis.n);
  for (int64_t k = 0; k < analysis.n; ++k) {
    const int32_t row = rows[from[k]];
    const int32_t column = analysis.column_order[from[k]];
    postponed.row_order[k] = row;
    postponed.column_order[k] = column;
    column_of_row[row] = column;
  }
  CROUT_RETURN_IF_ERROR(options.Claim(MostNeighbourBytes(a.nonzeros)));
  const Graph graph = SymmetrizedGraph(a, column_of_row.data());
  const auto claim = [&](size_t bytes) { return options.Claim(graph.neighbour_bytes() + bytes); };
  CROUT_RETURN_IF_ERROR(claim(SymbolicBytes(tree)));
  CROUT_RETURN_IF_ERROR(FillSymbolic(graph, tree, claim, stop, postponed));
  return postponed;
}

}  // namespace crout
