// SPDX-License-Identifier: Apache-2.0

// Tests the orderings of the sparse analysis: minimum degree, forests, nested dissection, and the
// ordering program.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"
#include "kernels/sparse/minimum_degree.h"
#include "kernels/sparse/ordering_process.h"
#include "tests/kernels/sparse/analysis_testing.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/failpoints.h"

namespace crout::testing::ordering_test {
namespace {

constexpr auto kNeverStop = [] { return false; };

TEST(SparseOrderingTest, ChoosesOrderingWithLessWork) {
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

TEST(SparseOrderingTest, OrdersByDegreeBeyond32Bits) {
  const PackedSparse grid = PackEntries(GridEntries(30, 2), 900, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Graph graph, SymmetrizedGraph(grid.view(), nullptr, kNeverStop));
  const std::vector<int32_t> order = OrderByMinimumDegree(graph);
  EXPECT_TRUE(IsPermutation(order));
  EXPECT_EQ(OrderByMinimumDegree(graph, /*most=*/0), order);
  // An inconsistent graph in place of one that is too large to create. It is refused before its
  // neighbours are read.
  const Graph large = {.start = {0, kMaxFor32Bits}, .neighbour = {}};
  EXPECT_THAT(
      OrderInProcess(OrderingProgram(), OrderingMethod::kNestedDissection, large, kNeverStop),
      FailsWith(absl::StatusCode::kResourceExhausted, "indices"));
}

// Returns an undirected graph with these edges, each given in one direction.
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

TEST(SparseOrderingTest, OrdersForestsWithoutFill) {
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

TEST(SparseOrderingTest, DoesNotOrderGraphsWithCyclesAsForests) {
  EXPECT_FALSE(OrderForest(MakeGraph(3, {{0, 1}, {1, 2}, {2, 0}})));
  EXPECT_FALSE(OrderForest(MakeGraph(9, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {4, 5}})));
  EXPECT_THAT(OrderForest(MakeGraph(3, {})), ::testing::Optional(::testing::SizeIs(3)));
}

// If the star were not detected as a forest, the program would order it, because AMD may take long.
TEST(SparseOrderingTest, StartsNoProgramForAForest) {
  const PackedSparse arrow = PackedArrow(50000);
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

// The graphs have more vertices than the program orders without dissection.
TEST(SparseOrderingTest, DissectsLargeGraphs) {
  constexpr int32_t kN = 40000;
  std::vector<SparseEntry> star, path, islands;
  for (int32_t i = 0; i < kN; ++i) {
    star.push_back({i, 0, 1.0});
    path.push_back({i, std::max(0, i - 1), 1.0});
    islands.push_back({i, i / 7 * 7, 1.0});
  }
  const AnalysisCase cases[] = {{"grid", PackEntries(GridEntries(200, 2), kN, DType::kFloat64)},
                                {"star", PackEntries(star, kN, DType::kFloat64)},
                                {"path", PackEntries(path, kN, DType::kFloat64)},
                                {"islands", PackEntries(islands, kN, DType::kFloat64)}};
  for (const AnalysisCase& one : cases) {
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
    int polls = 0;
    EXPECT_THAT(Dissect(graph, [&] { return ++polls == 5; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
  }
}

TEST(SparseOrderingTest, StartsNoProgramForLittleWork) {
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
TEST(SparseOrderingTest, DissectsAboveTheWorkLimit) {
  const PackedSparse grid = PackEntries(GridEntries(100, 2), 10000, DType::kFloat64);
  AnalysisOptions options = Ordered(OrderingMode::kAuto);
  options.dissection_work = kHostDissectionWork;
  ASSERT_OK_AND_ASSIGN(const Analysis for_host, Analyze(grid.view(), options, kNeverStop));
  EXPECT_EQ(for_host.ordering, "amd");
  options.dissection_work = kDissectionWork;
  ASSERT_OK_AND_ASSIGN(const Analysis for_gpu, Analyze(grid.view(), options, kNeverStop));
  EXPECT_EQ(for_gpu.ordering, "metis");
}

TEST(SparseOrderingTest, OrdersWithoutTheProgram) {
  const PackedSparse grid = PackEntries(GridEntries(40, 2), 1600, DType::kFloat64);
  // No program, a missing one, one that fails, and one with an invalid answer.
  for (const char* program : {"", "/nonexistent/crout-order", "/bin/false", "/bin/cat"}) {
    SCOPED_TRACE(program);
    AnalysisOptions options = Ordered(OrderingMode::kNestedDissection);
    options.ordering_program = program;
    ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(grid.view(), options, kNeverStop));
    EXPECT_EQ(analysis.ordering, "amd");
    CheckAnalysis(grid.view(), analysis);
  }
}

// A grid that is too large for minimum degree in this process.
PackedSparse LongGrid() {
  constexpr int32_t kSide = 120;
  PackedSparse grid = PackEntries(GridEntries(kSide, 2), kSide * kSide, DType::kFloat64);
  EXPECT_FALSE(IsMinimumDegreeFast(grid.n, grid.nonzeros - grid.n));
  return grid;
}

TEST(SparseOrderingTest, ProgramOrdersByDegreeLikeTheLibrary) {
  const PackedSparse grid = LongGrid();
  ASSERT_OK_AND_ASSIGN(const Graph graph, SymmetrizedGraph(grid.view(), nullptr, kNeverStop));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<int32_t> order,
      OrderInProcess(OrderingProgram(), OrderingMethod::kMinimumDegree, graph, kNeverStop));
  EXPECT_EQ(order, OrderByMinimumDegree(graph));
}

TEST(SparseOrderingTest, ChoosesOrderingWithLessWorkForLargeGraphs) {
  constexpr int64_t kSide = 320;  // above 100,000 unknowns, both methods run concurrently
  const PackedSparse grid = PackEntries(GridEntries(kSide, 2), kSide * kSide, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Analysis both,
                       Analyze(grid.view(), Ordered(OrderingMode::kAuto), kNeverStop));
  for (const OrderingMode ordering :
       {OrderingMode::kMinimumDegree, OrderingMode::kNestedDissection}) {
    ASSERT_OK_AND_ASSIGN(const Analysis one, Analyze(grid.view(), Ordered(ordering), kNeverStop));
    EXPECT_LE(both.flops, one.flops);
  }
}

TEST(SparseOrderingTest, RefusesLongOrderingsWithoutTheProgram) {
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

// The failpoint simulates a system that cannot create a process.
TEST(SparseOrderingTest, RefusesLongOrderingsIfNoProcessStarts) {
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

// A program that reads the graph and never answers simulates an ordering that takes very long.
TEST(SparseOrderingTest, StopsEveryOrdering) {
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

}  // namespace
}  // namespace crout::testing::ordering_test
