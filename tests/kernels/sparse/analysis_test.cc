// SPDX-License-Identifier: Apache-2.0

// Tests the analysis of sparse matrices against the fill-in of a simple symbolic elimination.
#include "kernels/sparse/analysis.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

#include "kernels/sparse/entry_scales.h"
#include "kernels/sparse/front_entries.h"
#include "kernels/sparse/front_tree.h"
#include "kernels/sparse/graph.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/stop_requested.h"
#include "tests/kernels/sparse/analysis_testing.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::analysis_test {
namespace {

constexpr auto kNeverStop = [] { return false; };

std::vector<AnalysisCase> Cases() {
  std::vector<AnalysisCase> cases;
  for (const int64_t n : {0, 1, 2, 9, 60, 150}) {
    for (const double density : {0.01, 0.05, 0.3}) {
      cases.push_back({"random " + std::to_string(n),
                       PackSparse(RandomSparse(n, density, 3 * n), n, DType::kFloat64)});
    }
    cases.push_back({"holes " + std::to_string(n),
                     PackSparse(RandomSparse(n, 0.05, n, true), n, DType::kFloat64)});
  }
  cases.push_back({"arrow", PackedArrow(100)});
  cases.push_back({"grid2d", PackEntries(GridEntries(17, 2), 289, DType::kFloat64)});
  cases.push_back({"grid3d", PackEntries(GridEntries(7, 3), 343, DType::kFloat64)});
  cases.push_back({"full", PackSparse(RandomMatrix(40, 40, 1), 40, DType::kFloat64)});
  return cases;
}

// Expects that every entry of A is assembled exactly once, at the place of its permuted position.
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
    // Reads the columns in parts, as threads do that share a front.
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

TEST(SparseAnalysisTest, FrontsContainTheFillOfElimination) {
  ASSERT_NE(OrderingProgram(), "");
  for (const AnalysisCase& one : Cases()) {
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

TEST(SparseAnalysisTest, AnalyzesMatchedMatrices) {
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

TEST(SparseAnalysisTest, DetectsValuesOfUnsuitableMagnitude) {
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

TEST(SparseAnalysisTest, AppliesScalesInTheOrderThatStaysInRange) {
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

TEST(SparseAnalysisTest, CountsColumnsLikeElimination) {
  for (const AnalysisCase& one : Cases()) {
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

// The matrix is so large that each part of the analysis polls while it runs.
TEST(SparseAnalysisTest, StopsInEveryPart) {
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
  int polls = 0;  // The first poll precedes the first step.
  EXPECT_THAT(FillSymbolic(
                  graph, fronts, [](size_t) { return absl::OkStatus(); },
                  [&] { return ++polls == 2; }, analysis),
              stopped);
}

TEST(SparseAnalysisTest, StopsAtEveryPoll) {
  const PackedSparse grid = PackEntries(GridEntries(40, 2), 1600, DType::kFloat64);
  AnalysisOptions options = Ordered(OrderingMode::kNestedDissection);
  options.matching = MatchingMode::kOn;
  int total_polls = 0;
  ASSERT_OK(Analyze(grid.view(), options, [&] { return ++total_polls < 0; }));
  EXPECT_GE(total_polls, 8);
  // The first eight polls always occur. The number of later ones varies, because the analysis polls
  // while it waits for the child process.
  for (int last = 1; last <= std::min(total_polls, 8); ++last) {
    int polls = 0;
    EXPECT_THAT(Analyze(grid.view(), options, [&] { return ++polls == last; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
    EXPECT_EQ(polls, last);
  }
}

TEST(SparseAnalysisTest, ReportsItsSteps) {
  AnalysisOptions options = Ordered(OrderingMode::kAuto);
  std::vector<int> reported;
  options.report_steps = [&](int steps) { reported.push_back(steps); };
  const PackedSparse grid = PackEntries(GridEntries(40, 2), 1600, DType::kFloat64);
  for (const MatchingMode matching : {MatchingMode::kOff, MatchingMode::kOn}) {
    reported.clear();
    options.matching = matching;
    ASSERT_OK(Analyze(grid.view(), options, kNeverStop));
    EXPECT_THAT(reported, ::testing::ElementsAre(1, 2, 3, kAnalysisSteps));
  }
  // A poll sees the step that was reported before it.
  for (int last = 1; last <= kAnalysisSteps; ++last) {
    reported = {0};
    EXPECT_THAT(Analyze(grid.view(), options, [&] { return reported.back() == last; }),
                FailsWith(absl::StatusCode::kCancelled, "stopped"));
    EXPECT_EQ(reported.back(), last);
  }
}

TEST(SparseAnalysisTest, ClaimsMemory) {
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

TEST(SparseAnalysisTest, DetectsStructuralSingularity) {
  const PackedSparse a = PackEntries(
      {{0, 0, 1.0}, {0, 1, 2.0}, {0, 2, 2.0}, {1, 2, 1.0}, {2, 2, 1.0}}, 3, DType::kFloat64);
  ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(a.view(), {}, kNeverStop));
  EXPECT_TRUE(analysis.unmatched_row == 1 || analysis.unmatched_row == 2);
  EXPECT_EQ(analysis.fronts(), 0);
}

TEST(SparseAnalysisTest, RefusesIndicesThatAreOutOfOrder) {
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

TEST(SparseAnalysisTest, RefusesNonFiniteValues) {
  const PackedSparse a =
      PackEntries({{0, 0, 1.0}, {1, 0, std::nan("")}, {1, 1, 1.0}}, 2, DType::kFloat64);
  EXPECT_THAT(Analyze(a.view(), {}, kNeverStop),
              FailsWith(absl::StatusCode::kInvalidArgument, "entry (1, 0)"));
}

TEST(SparseAnalysisTest, DigestsOnlyThePattern) {
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
TEST(SparseAnalysisTest, DigestMatchesItsDefinition) {
  const auto text = [](std::vector<SparseEntry> entries, int64_t n) {
    return PatternText(PatternDigest(PackEntries(std::move(entries), n, DType::kFloat64).view()));
  };
  EXPECT_EQ(text({}, 1), "910a2dec89025cc1");
  EXPECT_EQ(text({{0, 0, 0.0}}, 1), "732ad62604202a70");
  EXPECT_EQ(text({{0, 0, 1.0}, {1, 0, 2.0}, {1, 1, 0.0}, {0, 2, 3.0}, {2, 2, 4.0}}, 3),
            "5a64c6085eda5b5d");
}

TEST(SparseAnalysisTest, DetectsMatricesThatNeedMatching) {
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

TEST(SparseAnalysisTest, DetectsSymmetry) {
  const auto symmetric = [](std::vector<SparseEntry> entries) {
    return IsSymmetric(PackEntries(std::move(entries), 3, DType::kComplex128).view());
  };
  EXPECT_TRUE(symmetric({{0, 0, 1.0}, {1, 0, 2.0}, {0, 1, 2.0}, {2, 2, 1.0}}));
  EXPECT_FALSE(symmetric({{0, 0, 1.0}, {1, 0, 2.0}, {0, 1, 2.5}, {2, 2, 1.0}}));
  EXPECT_FALSE(symmetric({{0, 0, 1.0}, {1, 0, 2.0}, {2, 2, 1.0}}));
  EXPECT_FALSE(symmetric({{1, 0, {0, 2.0}}, {0, 1, {0, -2.0}}}));
}

}  // namespace
}  // namespace crout::testing::analysis_test
