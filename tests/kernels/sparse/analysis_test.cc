// SPDX-License-Identifier: Apache-2.0

// Tests the analysis of sparse matrices against fill-in determined by elimination.
#include "kernels/sparse/analysis.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "kernels/sparse/elimination_tree.h"
#include "kernels/sparse/entry_scales.h"
#include "kernels/sparse/front_entries.h"
#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"
#include "kernels/sparse/minimum_degree.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/sparse/pattern_text.h"
#include "kernels/sparse/symbolic.h"
#include "kernels/stop_counter.h"
#include "tests/support/failpoints.h"
#include "tests/support/sparse_gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {
namespace {

constexpr auto kNeverStop = [] { return false; };

struct Case {
  std::string name;
  PackedSparse a;
};

PackedSparse Arrow(int32_t n) {
  std::vector<SparseEntry> entries;
  for (int32_t i = 0; i < n; ++i) {
    entries.push_back({i, i, 4.0});
    if (i > 0) entries.push_back({0, i, 1.0});
    if (i > 0) entries.push_back({i, 0, 1.0});
  }
  return PackEntries(entries, n, DType::kFloat64);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const int64_t n : {0, 1, 2, 9, 60, 150}) {
    for (const double density : {0.01, 0.05, 0.3}) {
      cases.push_back({"random " + std::to_string(n),
                       PackSparse(RandomSparse(n, density, 3 * n), n, DType::kFloat64)});
    }
    cases.push_back({"holes " + std::to_string(n),
                     PackSparse(RandomSparse(n, 0.05, n, true), n, DType::kFloat64)});
  }
  cases.push_back({"arrow", Arrow(100)});
  cases.push_back({"grid2d", PackEntries(GridEntries(17, 2), 289, DType::kFloat64)});
  cases.push_back({"grid3d", PackEntries(GridEntries(7, 3), 343, DType::kFloat64)});
  cases.push_back({"full", PackSparse(RandomMatrix(40, 40, 1), 40, DType::kFloat64)});
  return cases;
}

// Returns the rows below the diagonal in each column of L of the symmetrized P A P^T, determined by
// elimination.
std::vector<std::set<int32_t>> Fill(const Graph& graph, const std::vector<int32_t>& order) {
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

bool IsPermutation(std::vector<int32_t> p) {
  std::sort(p.begin(), p.end());
  for (size_t k = 0; k < p.size(); ++k) {
    if (p[k] != static_cast<int32_t>(k)) return false;
  }
  return true;
}

// Checks the consistency of an Analysis. Every entry of L lies in a front, and the fronts contain
// few zeros.
void CheckAnalysis(const AnySparse& a, const Analysis& analysis) {
  ASSERT_EQ(analysis.n, a.n);
  ASSERT_EQ(static_cast<int64_t>(analysis.row_order.size()), a.n);
  EXPECT_TRUE(IsPermutation(analysis.row_order));
  EXPECT_TRUE(IsPermutation(analysis.column_order));
  std::vector<int32_t> column_of_row(a.n);
  for (int64_t k = 0; k < a.n; ++k) column_of_row[analysis.row_order[k]] = analysis.column_order[k];
  ASSERT_OK_AND_ASSIGN(const Graph graph, SymmetrizedGraph(a, column_of_row.data(), kNeverStop));
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

// Expects every entry of A exactly once, at a distinct place that corresponds to its position in B.
void CheckEntries(const AnySparse& a, const Analysis& analysis) {
  const SparseView<double> view = a.As<double>();
  std::vector<int32_t> row_position(a.n), column_position(a.n), entries;
  const Positions positions = PlacePositions(analysis, row_position.data(), column_position.data());
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    const int64_t d1 = analysis.eliminated(f);
    const int64_t size = d1 + analysis.bordered(f);
    const auto position = [&](int64_t place) -> int64_t {
      if (place < d1) return analysis.first_position[f] + place;
      return analysis.border[analysis.border_start[f] + place - d1];
    };
    // Reads in parts, like threads that share a front.
    const int64_t part = std::max<int64_t>(1, size / 3);
    for (int64_t begin = 0; begin < size; begin += part) {
      const int64_t end = std::min(size, begin + part);
      const auto check = [&](int64_t entry, int32_t column, int64_t target) {
        entries.push_back(static_cast<int32_t>(entry));
        ASSERT_GE(entry, view.column_start[column]);
        ASSERT_LT(entry, view.column_start[column + 1]);
        int64_t offset = target - analysis.factor_start[f];
        int64_t i = offset % size, j = offset / size;
        if (offset >= size * d1) {
          offset -= size * d1;
          i = offset % d1;
          j = d1 + offset / d1;
        }
        EXPECT_TRUE(begin <= j && j < end);
        EXPECT_EQ(position(i), row_position[view.row[entry]]);
        EXPECT_EQ(position(j), column_position[column]);
      };
      ForFrontEntries(analysis, view, positions, f, begin, end, check);
    }
  }
  ASSERT_EQ(static_cast<int64_t>(entries.size()), a.nonzeros);
  EXPECT_TRUE(IsPermutation(entries));
}

class SparseAnalysisTest : public ::testing::Test {
 protected:
  static AnalysisOptions Ordered(OrderingMode ordering) {
    AnalysisOptions options;
    options.ordering = ordering;
    options.ordering_program = OrderingProgram();
    return options;
  }
};

TEST_F(SparseAnalysisTest, FrontsHaveTheFillOfElimination) {
  ASSERT_NE(OrderingProgram(), "");
  for (const Case& one : Cases()) {
    for (const OrderingMode ordering : {OrderingMode::kAuto, OrderingMode::kMinimumDegree,
                                        OrderingMode::kNestedDissection, OrderingMode::kNatural}) {
      SCOPED_TRACE(one.name + " by " + std::to_string(static_cast<int>(ordering)));
      AnalysisOptions options = Ordered(ordering);
      options.matching = MatchingMode::kOff;
      ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(one.a.view(), options, kNeverStop));
      CheckAnalysis(one.a.view(), analysis);
      CheckEntries(one.a.view(), analysis);
      EXPECT_LE(analysis.bytes(), AnalysisBytes(one.a.n) + 8 * analysis.border.size());
    }
  }
}

TEST_F(SparseAnalysisTest, MatchedToo) {
  constexpr int64_t kN = 80;
  const HostMatrix a = RandomMatrix(kN, kN, 4);
  HostMatrix sparse(kN * kN);
  for (int64_t e = 0; e < kN * kN; ++e) sparse[e] = std::abs(a[e]) > 0.95 ? a[e] : 0;
  for (int64_t i = 0; i < kN; ++i) sparse[i + (i + 5) % kN * kN] = 3;
  const PackedSparse packed = PackSparse(sparse, kN, DType::kFloat64);
  EXPECT_TRUE(ShouldUseMatching(packed.view(), DType::kFloat64));
  ASSERT_OK_AND_ASSIGN(const Analysis analysis,
                       Analyze(packed.view(), Ordered(OrderingMode::kAuto), kNeverStop));
  EXPECT_TRUE(analysis.matched);
  EXPECT_TRUE(IsSuitableForValues(analysis, packed.view(), DType::kFloat64));
  CheckAnalysis(packed.view(), analysis);
  CheckEntries(packed.view(), analysis);
  for (int64_t i = 0; i < kN; ++i) sparse[i + (i + 5) % kN * kN] = 3e-5;
  EXPECT_FALSE(IsSuitableForValues(analysis, PackSparse(sparse, kN, DType::kFloat64).view(),
                                   DType::kFloat64));
}

TEST_F(SparseAnalysisTest, SuitsNoValuesOfAnotherMagnitude) {
  const auto times = [](double factor) {
    std::vector<SparseEntry> entries = {{0, 1, 1.0}, {1, 0, 1.0}, {1, 1, 0.5}};
    for (SparseEntry& entry : entries) entry.value *= factor;
    return PackEntries(std::move(entries), 2, DType::kFloat64);
  };
  const PackedSparse small = times(1e-200);
  ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(small.view(), {}, kNeverStop));
  ASSERT_TRUE(analysis.matched);
  EXPECT_TRUE(IsSuitableForValues(analysis, small.view(), DType::kFloat64));
  // The scaled entries are about 1e300 and Inf.
  for (const double factor : {1e100, 1e200}) {
    EXPECT_FALSE(IsSuitableForValues(analysis, times(factor).view(), DType::kFloat64)) << factor;
  }
  ASSERT_OK_AND_ASSIGN(const std::optional<Analysis> rescaled,
                       Rescale(analysis, times(1e200).view(), {}, kNeverStop));
  ASSERT_TRUE(rescaled.has_value());
  EXPECT_TRUE(IsSuitableForValues(*rescaled, times(1e200).view(), DType::kFloat64));
  EXPECT_EQ(rescaled->row_order, analysis.row_order);
}

TEST_F(SparseAnalysisTest, ScalesInTheOrderThatStaysInRange) {
  const auto scaled = [](double value, double row, double column) {
    const EntryScales by = InOrder(std::abs(value), row, column);
    return value * by.first * by.second;
  };
  EXPECT_EQ(scaled(0, 0x1p600, 0x1p600), 0);
  for (const double value : {0x1p-1000, -0x1p-1000}) {
    EXPECT_EQ(scaled(value, 0x1p600, 0x1p400), value * 0x1p1000);
    EXPECT_EQ(scaled(value, 0x1p-70, 0x1p1000), value * 0x1p930);
    EXPECT_EQ(scaled(value, 0x1p1000, 0x1p-70), value * 0x1p930);
  }
  EXPECT_EQ(scaled(0x1p1000, 0x1p100, 0x1p-1000), 0x1p100);
  EXPECT_EQ(scaled(0x1p1000, 0x1p-1000, 0x1p100), 0x1p100);
}

TEST_F(SparseAnalysisTest, CountsColumnsLikeElimination) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SymmetrizedGraph(one.a.view(), nullptr, kNeverStop));
    std::vector<int32_t> order(one.a.n);
    std::iota(order.begin(), order.end(), 0);
    ASSERT_OK_AND_ASSIGN(const EliminationTree tree, MakeEliminationTree(graph, order, kNeverStop));
    const std::vector<std::set<int32_t>> fill = Fill(graph, tree.order);
    for (int64_t k = 0; k < one.a.n; ++k) {
      EXPECT_EQ(tree.count[k], static_cast<int32_t>(fill[k].size()) + 1);
      EXPECT_EQ(tree.parent[k], fill[k].empty() ? -1 : *fill[k].begin());
    }
  }
}

TEST_F(SparseAnalysisTest, ChoosesTheOrderingOfLessWork) {
  const PackedSparse grid = PackEntries(GridEntries(14, 3), 2744, DType::kFloat64);
  double flops[3];
  int i = 0;
  for (const OrderingMode ordering :
       {OrderingMode::kMinimumDegree, OrderingMode::kNestedDissection, OrderingMode::kAuto}) {
    ASSERT_OK_AND_ASSIGN(const Analysis analysis,
                         Analyze(grid.view(), Ordered(ordering), kNeverStop));
    flops[i++] = analysis.flops;
    if (ordering != OrderingMode::kAuto) {
      EXPECT_EQ(analysis.ordering, ordering == OrderingMode::kMinimumDegree ? "amd" : "metis");
    }
  }
  EXPECT_NE(flops[0], flops[1]);
  EXPECT_LE(flops[2], 1.1 * std::min(flops[0], flops[1]));
}

TEST_F(SparseAnalysisTest, OrdersByDegreeBeyond32Bits) {
  const PackedSparse grid = PackEntries(GridEntries(30, 2), 900, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Graph graph, SymmetrizedGraph(grid.view(), nullptr, kNeverStop));
  const std::vector<int32_t> order = OrderByMinimumDegree(graph);
  EXPECT_TRUE(IsPermutation(order));
  EXPECT_EQ(OrderByMinimumDegree(graph, /*most=*/0), order);
  // A graph too large to be created here; it is not sent to the program.
  const Graph large = {.start = {0, kMaxFor32Bits}, .neighbour = {}};
  EXPECT_THAT(
      OrderInProcess(OrderingProgram(), OrderingMethod::kNestedDissection, large, kNeverStop),
      FailsWith(absl::StatusCode::kResourceExhausted, "indices"));
}

// Returns a graph with these edges, each of which is given once.
Graph MakeGraph(int32_t vertices, const std::vector<std::pair<int32_t, int32_t>>& edges) {
  std::vector<std::set<int32_t>> neighbours(vertices);
  for (const auto& [v, w] : edges) {
    neighbours[v].insert(w);
    neighbours[w].insert(v);
  }
  Graph graph = {.start = {0}, .neighbour = {}};
  for (const std::set<int32_t>& of_vertex : neighbours) {
    graph.neighbour.insert(graph.neighbour.end(), of_vertex.begin(), of_vertex.end());
    graph.start.push_back(std::ssize(graph.neighbour));
  }
  return graph;
}

TEST_F(SparseAnalysisTest, OrdersForestsWithoutFill) {
  constexpr int32_t kVertices = 300;
  std::mt19937 random(1);
  std::vector<int32_t> name(kVertices);
  std::iota(name.begin(), name.end(), 0);
  std::ranges::shuffle(name, random);
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t v = 1; v < kVertices; ++v) {
    if (v % 50 == 0) continue;  // root of another tree
    edges.emplace_back(name[v], name[v - 1 - random() % (v % 50)]);
  }
  const Graph forest = MakeGraph(kVertices, edges);
  const std::optional<std::vector<int32_t>> order = OrderForest(forest);
  ASSERT_TRUE(order);
  EXPECT_TRUE(IsPermutation(*order));
  size_t below = 0;
  for (const std::set<int32_t>& column : Fill(forest, *order)) below += column.size();
  EXPECT_EQ(below, edges.size());
}

TEST_F(SparseAnalysisTest, OrdersNoGraphWithACycleAsAForest) {
  EXPECT_FALSE(OrderForest(MakeGraph(3, {{0, 1}, {1, 2}, {2, 0}})));
  EXPECT_FALSE(OrderForest(MakeGraph(9, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {4, 5}})));
  EXPECT_THAT(OrderForest(MakeGraph(3, {})), ::testing::Optional(::testing::SizeIs(3)));
}

// AMD may take long for a star of this size, so the program would be used.
TEST_F(SparseAnalysisTest, StartsNoProgramForAForest) {
  const PackedSparse arrow = Arrow(50000);
  ASSERT_FALSE(IsMinimumDegreeFast(50000, 2 * 49999));
  Failpoints failpoints;
  ASSERT_OK_AND_ASSIGN(const Analysis analysis,
                       Analyze(arrow.view(), Ordered(OrderingMode::kAuto), kNeverStop));
  EXPECT_EQ(failpoints.reached("ordering.start"), 0);
  EXPECT_EQ(analysis.ordering, "amd");
}

absl::StatusOr<std::vector<int32_t>> Dissect(const Graph& graph, StopRequested stop) {
  return OrderInProcess(OrderingProgram(), OrderingMethod::kNestedDissection, graph, stop);
}

// Graphs with more vertices than the program orders without dissection.
TEST_F(SparseAnalysisTest, DissectsLargeGraphs) {
  constexpr int32_t kN = 40000;
  std::vector<SparseEntry> star, path, islands;
  for (int32_t i = 0; i < kN; ++i) {
    star.push_back({i, 0, 1.0});
    path.push_back({i, std::max(0, i - 1), 1.0});
    islands.push_back({i, i / 7 * 7, 1.0});
  }
  const Case cases[] = {{"grid", PackEntries(GridEntries(200, 2), kN, DType::kFloat64)},
                        {"star", PackEntries(star, kN, DType::kFloat64)},
                        {"path", PackEntries(path, kN, DType::kFloat64)},
                        {"islands", PackEntries(islands, kN, DType::kFloat64)}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SymmetrizedGraph(one.a.view(), nullptr, kNeverStop));
    ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> order, Dissect(graph, kNeverStop));
    EXPECT_TRUE(IsPermutation(order));
    ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> again, Dissect(graph, kNeverStop));
    EXPECT_EQ(order, again);
    std::vector<int32_t> natural(kN);
    std::iota(natural.begin(), natural.end(), 0);
    if (one.name != "grid") continue;
    ASSERT_OK_AND_ASSIGN(const EliminationTree dissected,
                         MakeEliminationTree(graph, order, kNeverStop));
    ASSERT_OK_AND_ASSIGN(const EliminationTree naturally,
                         MakeEliminationTree(graph, natural, kNeverStop));
    EXPECT_LT(10 * dissected.Flops(), naturally.Flops());
    int asked = 0;
    EXPECT_THAT(Dissect(graph, [&] { return ++asked == 5; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
  }
}

TEST_F(SparseAnalysisTest, StartsNoProgramForLittleWork) {
  std::vector<SparseEntry> entries;
  constexpr int32_t kRing = 20000;
  for (int32_t i = 0; i < kRing; ++i) {
    entries.push_back({i, i, 4.0});
    entries.push_back({i, (i + 1) % kRing, 1.0});
    entries.push_back({(i + 1) % kRing, i, 1.0});
  }
  AnalysisOptions options;
  options.ordering_program = OrderingProgram();
  ASSERT_OK_AND_ASSIGN(
      const Analysis analysis,
      Analyze(PackEntries(entries, kRing, DType::kFloat64).view(), options, kNeverStop));
  EXPECT_EQ(analysis.ordering, "amd");
  EXPECT_LT(analysis.flops, 1e7);
}

// Minimum degree takes about 3,000 operations per unknown of this grid.
TEST_F(SparseAnalysisTest, DissectsFromTheGivenWorkOn) {
  const PackedSparse grid = PackEntries(GridEntries(100, 2), 10000, DType::kFloat64);
  AnalysisOptions options = Ordered(OrderingMode::kAuto);
  options.dissection_work = kHostDissectionWork;
  ASSERT_OK_AND_ASSIGN(const Analysis for_host, Analyze(grid.view(), options, kNeverStop));
  EXPECT_EQ(for_host.ordering, "amd");
  options.dissection_work = kDissectionWork;
  ASSERT_OK_AND_ASSIGN(const Analysis for_gpu, Analyze(grid.view(), options, kNeverStop));
  EXPECT_EQ(for_gpu.ordering, "metis");
}

TEST_F(SparseAnalysisTest, OrdersWithoutTheProgram) {
  const PackedSparse grid = PackEntries(GridEntries(40, 2), 1600, DType::kFloat64);
  // A missing program, one that fails, and one with a wrong answer.
  for (const char* program : {"", "/nonexistent/crout-order", "/bin/false", "/bin/cat"}) {
    SCOPED_TRACE(program);
    AnalysisOptions options = Ordered(OrderingMode::kNestedDissection);
    options.ordering_program = program;
    ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(grid.view(), options, kNeverStop));
    EXPECT_EQ(analysis.ordering, "amd");
    CheckAnalysis(grid.view(), analysis);
  }
}

// A grid larger than minimum degree orders in this process.
PackedSparse LongGrid() {
  constexpr int32_t kSide = 120;
  PackedSparse grid = PackEntries(GridEntries(kSide, 2), kSide * kSide, DType::kFloat64);
  EXPECT_FALSE(IsMinimumDegreeFast(grid.n, grid.nonzeros - grid.n));
  return grid;
}

TEST_F(SparseAnalysisTest, TheProgramOrdersByDegreeLikeTheLibrary) {
  const PackedSparse grid = LongGrid();
  ASSERT_OK_AND_ASSIGN(const Graph graph, SymmetrizedGraph(grid.view(), nullptr, kNeverStop));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<int32_t> order,
      OrderInProcess(OrderingProgram(), OrderingMethod::kMinimumDegree, graph, kNeverStop));
  EXPECT_EQ(order, OrderByMinimumDegree(graph));
}

TEST_F(SparseAnalysisTest, ChoosesTheOrderingOfLessWorkForLargeGraphs) {
  constexpr int64_t kSide = 320;  // above 100,000 unknowns both methods run concurrently
  const PackedSparse grid = PackEntries(GridEntries(kSide, 2), kSide * kSide, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Analysis both,
                       Analyze(grid.view(), Ordered(OrderingMode::kAuto), kNeverStop));
  for (const OrderingMode ordering :
       {OrderingMode::kMinimumDegree, OrderingMode::kNestedDissection}) {
    ASSERT_OK_AND_ASSIGN(const Analysis one, Analyze(grid.view(), Ordered(ordering), kNeverStop));
    EXPECT_LE(both.flops, one.flops);
  }
}

TEST_F(SparseAnalysisTest, RefusesLongOrdersWithoutTheProgram) {
  const PackedSparse grid = LongGrid();
  for (const OrderingMode ordering :
       {OrderingMode::kMinimumDegree, OrderingMode::kNestedDissection, OrderingMode::kAuto}) {
    AnalysisOptions options = Ordered(ordering);
    for (const char* program : {"", "/nonexistent/crout-order"}) {
      options.ordering_program = program;
      EXPECT_THAT(Analyze(grid.view(), options, kNeverStop),
                  FailsWith(absl::StatusCode::kFailedPrecondition, "crout-order is missing"));
    }
    options.ordering_program = "/bin/false";
    EXPECT_THAT(Analyze(grid.view(), options, kNeverStop),
                FailsWith(absl::StatusCode::kResourceExhausted, "crout-order"));
  }
}

// The system can create no more processes.
TEST_F(SparseAnalysisTest, RefusesLongOrdersWhereNoProcessStarts) {
  Failpoints failpoints;
  failpoints.Fail("ordering.start", absl::ResourceExhaustedError("no process is left"));
  const PackedSparse grid = LongGrid();
  EXPECT_THAT(Analyze(grid.view(), Ordered(OrderingMode::kAuto), kNeverStop),
              FailsWith(absl::StatusCode::kResourceExhausted, "no process is left"));
  EXPECT_EQ(failpoints.reached("ordering.start"), 2);
  const PackedSparse small = PackEntries(GridEntries(40, 2), 1600, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Analysis analysis,
                       Analyze(small.view(), Ordered(OrderingMode::kAuto), kNeverStop));
  EXPECT_EQ(analysis.ordering, "amd");
}

// A program that reads the graph and never answers replaces an ordering that takes forever.
TEST_F(SparseAnalysisTest, StopsEveryOrdering) {
  const std::string program = absl::StrCat(::testing::TempDir(), "order_without_answer_", getpid());
  std::ofstream(program) << "#!/bin/sh\nexec cat > /dev/null\n";
  ASSERT_EQ(chmod(program.c_str(), 0700), 0);
  const PackedSparse grid = LongGrid();
  for (const OrderingMode ordering :
       {OrderingMode::kMinimumDegree, OrderingMode::kNestedDissection, OrderingMode::kAuto}) {
    AnalysisOptions options = Ordered(ordering);
    options.ordering_program = program;
    int asked_since = 0;
    bool ordering_began = false;
    options.report_steps = [&](int steps) { ordering_began = steps == 2; };
    // The first polls occur while the graph is sent.
    EXPECT_THAT(
        Analyze(grid.view(), options, [&] { return ordering_began && ++asked_since == 40; }),
        FailsWith(absl::StatusCode::kCancelled, "stopped"));
  }
  unlink(program.c_str());
}

// Each part of the analysis takes more steps than there are between two polls.
TEST_F(SparseAnalysisTest, StopsInEveryPart) {
  constexpr int32_t kN = StopCounter::kStepsBetweenStops;
  const auto stopped = FailsWith(absl::StatusCode::kCancelled, "stopped");
  const auto stop = [] { return true; };
  std::vector<SparseEntry> entries;
  for (int32_t i = 0; i < kN; ++i) {
    entries.push_back({i, i, 4.0});
    entries.push_back({i, i / 2, 1.0});
  }
  const PackedSparse a = PackEntries(entries, kN, DType::kFloat64);
  const auto counted = [&](auto work) {
    StopCounter counter(stop);
    work(counter);
    return counter.status();
  };
  EXPECT_THAT(counted([&](StopCounter& counter) { PatternDigest(a.view(), counter); }), stopped);
  EXPECT_THAT(
      counted([&](StopCounter& counter) { ShouldUseMatching(a.view(), DType::kFloat64, counter); }),
      stopped);
  EXPECT_THAT(SymmetrizedGraph(a.view(), nullptr, stop), stopped);
  ASSERT_OK_AND_ASSIGN(const Graph graph, SymmetrizedGraph(a.view(), nullptr, kNeverStop));
  std::vector<int32_t> order(kN);
  std::iota(order.rbegin(), order.rend(), 0);
  EXPECT_THAT(MakeEliminationTree(graph, order, stop), stopped);
  ASSERT_OK_AND_ASSIGN(const EliminationTree tree, MakeEliminationTree(graph, order, kNeverStop));
  EXPECT_THAT(MakeFrontTree(tree, stop), stopped);
  ASSERT_OK_AND_ASSIGN(const FrontTree fronts, MakeFrontTree(tree, kNeverStop));
  Analysis analysis;
  analysis.n = kN;
  analysis.row_order = analysis.column_order = fronts.order;
  int asked = 0;  // The first poll precedes the first step.
  EXPECT_THAT(FillSymbolic(
                  graph, fronts, [](size_t) { return absl::OkStatus(); },
                  [&] { return ++asked == 2; }, analysis),
              stopped);
}

TEST_F(SparseAnalysisTest, StopsAtEveryPoll) {
  const PackedSparse grid = PackEntries(GridEntries(40, 2), 1600, DType::kFloat64);
  AnalysisOptions options = Ordered(OrderingMode::kNestedDissection);
  options.matching = MatchingMode::kOn;
  int questions = 0;
  ASSERT_OK(Analyze(grid.view(), options, [&] { return ++questions < 0; }));
  EXPECT_GE(questions, 8);
  // The wait for the child process polls a variable number of times. The earlier polls always
  // occur.
  for (int last = 1; last <= std::min(questions, 8); ++last) {
    int asked = 0;
    EXPECT_THAT(Analyze(grid.view(), options, [&] { return ++asked == last; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
    EXPECT_EQ(asked, last);
  }
}

TEST_F(SparseAnalysisTest, ReportsItsSteps) {
  AnalysisOptions options = Ordered(OrderingMode::kAuto);
  std::vector<int> told;
  options.report_steps = [&](int steps) { told.push_back(steps); };
  const PackedSparse grid = PackEntries(GridEntries(40, 2), 1600, DType::kFloat64);
  for (const MatchingMode matching : {MatchingMode::kOff, MatchingMode::kOn}) {
    told.clear();
    options.matching = matching;
    ASSERT_OK(Analyze(grid.view(), options, kNeverStop));
    EXPECT_THAT(told, ::testing::ElementsAre(1, 2, 3, kAnalysisSteps));
  }
  // A poll sees the step that was reported before it.
  for (int last = 1; last <= kAnalysisSteps; ++last) {
    told = {0};
    EXPECT_THAT(Analyze(grid.view(), options, [&] { return told.back() == last; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
    EXPECT_EQ(told.back(), last);
  }
}

TEST_F(SparseAnalysisTest, ClaimsMemory) {
  const PackedSparse grid = PackEntries(GridEntries(30, 2), 900, DType::kFloat64);
  AnalysisOptions options;
  size_t claimed = 0;
  options.claim = [&](size_t bytes) {
    claimed = bytes;
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(grid.view(), options, kNeverStop));
  EXPECT_GT(claimed, 8 * analysis.border.size());
  options.claim = [](size_t) { return absl::ResourceExhaustedError("no room"); };
  EXPECT_THAT(Analyze(grid.view(), options, kNeverStop),
              FailsWith(absl::StatusCode::kResourceExhausted, "no room"));
}

TEST_F(SparseAnalysisTest, DetectsStructuralSingularity) {
  const PackedSparse a = PackEntries(
      {{0, 0, 1.0}, {0, 1, 2.0}, {0, 2, 2.0}, {1, 2, 1.0}, {2, 2, 1.0}}, 3, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(a.view(), {}, kNeverStop));
  EXPECT_TRUE(analysis.unmatched_row == 1 || analysis.unmatched_row == 2);
  EXPECT_EQ(analysis.fronts(), 0);
}

TEST_F(SparseAnalysisTest, RefusesIndicesThatAreOutOfOrder) {
  const PackedSparse good = PackSparse(RandomSparse(20, 0.3, 1), 20, DType::kFloat64);
  const SparseLayout at(20, good.nonzeros, DType::kFloat64);
  const auto broken = [&](size_t offset, auto value) {
    PackedSparse bad = good;
    std::memcpy(bad.bytes.data() + offset, &value, sizeof(value));
    return Analyze(bad.view(), {}, kNeverStop).status();
  };
  ASSERT_OK(Analyze(good.view(), {}, kNeverStop));
  EXPECT_EQ(broken(at.row, int32_t{20}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(broken(at.row, int32_t{-1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(broken(at.column, int32_t{1 << 30}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(broken(at.position, int32_t{7}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(broken(at.column_start + 8, int64_t{1} << 40).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(broken(at.row_start + 8, int64_t{-5}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SparseAnalysisTest, RefusesNonFiniteValues) {
  const PackedSparse a =
      PackEntries({{0, 0, 1.0}, {1, 0, std::nan("")}, {1, 1, 1.0}}, 2, DType::kFloat64);
  EXPECT_THAT(Analyze(a.view(), {}, kNeverStop),
              FailsWith(absl::StatusCode::kInvalidArgument, "entry (1, 0)"));
}

TEST_F(SparseAnalysisTest, DigestsThePatternAlone) {
  const HostMatrix a = RandomSparse(50, 0.1, 1);
  HostMatrix scaled = a;
  for (double& v : scaled) v *= 3;
  const PatternKey key = PatternDigest(PackSparse(a, 50, DType::kFloat64).view());
  EXPECT_EQ(key, PatternDigest(PackSparse(scaled, 50, DType::kFloat32).view()));
  std::vector<int64_t> empty;
  for (int64_t e = 0; e < 2500; ++e) {
    if (a[e] == 0) empty.push_back(e);
  }
  for (const int64_t e : {empty.front(), empty[1], empty.back()}) {
    HostMatrix other = a;
    other[e] = 1;
    EXPECT_FALSE(key == PatternDigest(PackSparse(other, 50, DType::kFloat64).view()));
  }
}

// The expected digests follow the definition in factor.proto, evaluated in Python.
TEST_F(SparseAnalysisTest, TheDigestMatchesTheContract) {
  const auto text = [](std::vector<SparseEntry> entries, int64_t n) {
    return PatternText(PatternDigest(PackEntries(std::move(entries), n, DType::kFloat64).view()));
  };
  EXPECT_EQ(text({}, 1), "910a2dec89025cc1");
  EXPECT_EQ(text({{0, 0, 0.0}}, 1), "732ad62604202a70");
  EXPECT_EQ(text({{0, 0, 1.0}, {1, 0, 2.0}, {1, 1, 0.0}, {0, 2, 3.0}, {2, 2, 4.0}}, 3),
            "5a64c6085eda5b5d");
}

TEST_F(SparseAnalysisTest, DetectsMatricesThatNeedMatching) {
  const auto asks = [](std::vector<SparseEntry> entries) {
    return ShouldUseMatching(PackEntries(std::move(entries), 2, DType::kFloat64).view(),
                             DType::kFloat64);
  };
  EXPECT_FALSE(asks({{0, 0, 1.0}, {1, 1, 2.0}, {0, 1, 50.0}}));
  EXPECT_TRUE(asks({{0, 0, 1.0}, {1, 1, 2.0}, {0, 1, 500.0}}));
  EXPECT_TRUE(asks({{0, 0, 1.0}, {0, 1, 1.0}, {1, 0, 1.0}}));
  EXPECT_TRUE(asks({{0, 0, 1.0}, {1, 1, 0.0}}));
  EXPECT_TRUE(asks({{0, 0, 1.0}, {1, 1, 1e-5}}));
  EXPECT_TRUE(asks({{0, 0, 1e-300}, {1, 1, 1e-300}}));
  EXPECT_TRUE(asks({{0, 0, 1e300}, {1, 1, 1e300}}));
  const PackedSparse tiny = PackEntries({{0, 0, 1e-60}, {1, 1, 1e-60}}, 2, DType::kFloat64);
  EXPECT_FALSE(ShouldUseMatching(tiny.view(), DType::kFloat64));
  EXPECT_TRUE(ShouldUseMatching(tiny.view(), DType::kFloat32));
  EXPECT_FALSE(ShouldUseMatching(PackEntries({}, 0, DType::kFloat64).view(), DType::kFloat64));
}

TEST_F(SparseAnalysisTest, DetectsSymmetry) {
  const auto symmetric = [](std::vector<SparseEntry> entries) {
    return IsSymmetric(PackEntries(std::move(entries), 3, DType::kComplex128).view());
  };
  EXPECT_TRUE(symmetric({{0, 0, 1.0}, {1, 0, 2.0}, {0, 1, 2.0}, {2, 2, 1.0}}));
  EXPECT_FALSE(symmetric({{0, 0, 1.0}, {1, 0, 2.0}, {0, 1, 2.5}, {2, 2, 1.0}}));
  EXPECT_FALSE(symmetric({{0, 0, 1.0}, {1, 0, 2.0}, {2, 2, 1.0}}));
  EXPECT_FALSE(symmetric({{1, 0, {0, 2.0}}, {0, 1, {0, -2.0}}}));
}

}  // namespace
}  // namespace crout::testing
