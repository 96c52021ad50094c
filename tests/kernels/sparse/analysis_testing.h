// SPDX-License-Identifier: Apache-2.0

// Matrices and checks for the tests of the sparse analysis and of its orderings.
#ifndef CROUT_TESTS_KERNELS_SPARSE_ANALYSIS_TESTING_H_
#define CROUT_TESTS_KERNELS_SPARSE_ANALYSIS_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/graph.h"
#include "kernels/sparse/ordering_process.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {

struct AnalysisCase {
  std::string name;
  PackedSparse a;
};

// Returns an n x n arrow matrix with a full first row and column.
inline PackedSparse PackedArrow(int32_t n) {
  std::vector<SparseEntry> entries;
  for (int32_t i = 0; i < n; ++i) {
    entries.push_back({i, i, 4.0});
    if (i > 0) entries.push_back({0, i, 1.0});
    if (i > 0) entries.push_back({i, 0, 1.0});
  }
  return PackEntries(entries, n, DType::kFloat64);
}

// Returns the pattern of L for the symmetrized A permuted by `order`: for each column, the rows
// below the diagonal. Computed by simple symbolic elimination.
inline std::vector<std::set<int32_t>> Fill(const Graph& graph, const std::vector<int32_t>& order) {
  const auto n = static_cast<int32_t>(order.size());
  std::vector<int32_t> position(n);
  for (int32_t k = 0; k < n; ++k) position[order[k]] = k;
  std::vector<std::set<int32_t>> below(n);
  for (int32_t v = 0; v < n; ++v) {
    for (int64_t e = graph.start[v]; e < graph.start[v + 1]; ++e) {
      const int32_t i = position[graph.neighbour[e]];
      if (i > position[v]) below[position[v]].insert(i);
    }
  }
  for (int32_t k = 0; k < n; ++k) {
    for (auto i = below[k].begin(); i != below[k].end(); ++i) {
      below[*i].insert(std::next(i), below[k].end());
    }
  }
  return below;
}

inline bool IsPermutation(std::vector<int32_t> p) {
  std::sort(p.begin(), p.end());
  for (size_t k = 0; k < p.size(); ++k) {
    if (p[k] != static_cast<int32_t>(k)) return false;
  }
  return true;
}

// Expects that the analysis is consistent: every entry of L is in a front, the fronts contain few
// zeros, and the tree and the levels match.
inline void CheckAnalysis(const AnySparse& a, const Analysis& analysis) {
  ASSERT_EQ(analysis.n, a.n);
  ASSERT_EQ(static_cast<int64_t>(analysis.row_order.size()), a.n);
  EXPECT_TRUE(IsPermutation(analysis.row_order));
  EXPECT_TRUE(IsPermutation(analysis.column_order));
  std::vector<int32_t> column_of_row(a.n);
  for (int64_t k = 0; k < a.n; ++k) column_of_row[analysis.row_order[k]] = analysis.column_order[k];
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       SymmetrizedGraph(a, column_of_row.data(), [] { return false; }));
  const std::vector<std::set<int32_t>> fill = Fill(graph, analysis.row_order);
  int64_t true_entries = 0;
  for (const auto& column : fill) true_entries += 1 + 2 * static_cast<int64_t>(column.size());
  EXPECT_GE(analysis.factor_entries(), true_entries);
  EXPECT_LE(analysis.factor_entries(), 2 * true_entries + 64);
  int64_t next_position = 0, widest_pair = 0;
  std::vector<int64_t> level(analysis.fronts());
  for (int64_t f = analysis.fronts() - 1; f >= 0; --f) {
    const int32_t parent = analysis.parent[f];
    if (parent == -1) continue;
    EXPECT_GT(parent, f);
    level[f] = level[parent] + 1;
  }
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    EXPECT_EQ(analysis.first_position[f], next_position);
    next_position = analysis.first_position[f + 1];
    const int64_t d1 = analysis.eliminated(f);
    const int64_t d2 = analysis.bordered(f);
    EXPECT_GT(d1, 0);
    EXPECT_EQ(analysis.factor_start[f + 1] - analysis.factor_start[f], d1 * (d1 + 2 * d2));
    const auto begin = analysis.border.begin() + analysis.border_start[f];
    const std::set<int32_t> border(begin, begin + d2);
    EXPECT_TRUE(std::is_sorted(begin, begin + d2));
    EXPECT_EQ(static_cast<int64_t>(border.size()), d2);
    std::set<int32_t> reached;
    for (int32_t k = analysis.first_position[f]; k < next_position; ++k) {
      for (const int32_t i : fill[k]) {
        if (i >= next_position) reached.insert(i);
      }
    }
    EXPECT_EQ(border, reached) << "front " << f;
    const int32_t parent = analysis.parent[f];
    EXPECT_EQ(parent == -1, d2 == 0);
    for (int64_t b = 0; b < d2 && parent != -1; ++b) {
      const int32_t place = analysis.place_in_parent[analysis.border_start[f] + b];
      const int64_t of_parent = analysis.eliminated(parent);
      const int32_t position =
          place < of_parent ? analysis.first_position[parent] + place
                            : analysis.border[analysis.border_start[parent] + place - of_parent];
      EXPECT_EQ(position, *(begin + b));
    }
    const auto* const at = analysis.level_front.data() + analysis.level_start[level[f]];
    const auto* const end = analysis.level_front.data() + analysis.level_start[level[f] + 1];
    EXPECT_TRUE(std::binary_search(at, end, static_cast<int32_t>(f)));
  }
  EXPECT_EQ(next_position, a.n);
  for (int64_t v = 0; v < analysis.levels(); ++v) {
    int64_t entries = 0;
    for (int32_t l = analysis.level_start[v]; l < analysis.level_start[v + 1]; ++l) {
      const int32_t f = analysis.level_front[l];
      EXPECT_EQ(analysis.contribution_start[f], entries);
      entries += analysis.bordered(f) * analysis.bordered(f);
    }
    EXPECT_EQ(analysis.level_contribution_entries[v], entries);
    const int64_t below =
        v + 1 < analysis.levels() ? analysis.level_contribution_entries[v + 1] : 0;
    widest_pair = std::max(widest_pair, entries + below);
  }
  EXPECT_EQ(analysis.level_pair_entries, widest_pair);
}

// Returns options with this ordering and with the ordering program of the build.
inline AnalysisOptions Ordered(OrderingMode ordering) {
  AnalysisOptions options;
  options.ordering = ordering;
  options.ordering_program = OrderingProgram();
  return options;
}

}  // namespace crout::testing

#endif  // CROUT_TESTS_KERNELS_SPARSE_ANALYSIS_TESTING_H_
