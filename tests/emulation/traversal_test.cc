// SPDX-License-Identifier: Apache-2.0

// Tests the order in which a GPU factors fronts, and the placement of contributions. Plain
// elimination in this order must be correct with contribution memory of the planned size.
#include "kernels/cuda/multifrontal/traversal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/multifrontal/final_columns.h"
#include "kernels/cuda/multifrontal/small_front.h"
#include "kernels/sparse/front_entries.h"
#include "kernels/sparse/multifrontal_factor.h"
#include "kernels/sparse/ordering_process.h"
#include "kernels/util/status_macros.h"
#include "tests/kernels/sparse_lu_testing.h"
#include "tests/support/matrices/sparse_gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::cuda::traversal_test {
namespace {

using testing::PackedSparse;
using testing::SparseEntry;

struct Case {
  std::string name;
  int64_t n;
  std::vector<SparseEntry> entries;
  AnalysisOptions options;
};

std::vector<Case> Cases() {
  AnalysisOptions dissected;
  dissected.ordering_program = OrderingProgram();
  dissected.ordering = OrderingMode::kNestedDissection;
  AnalysisOptions natural;
  natural.ordering = OrderingMode::kNatural;
  AnalysisOptions keeping = dissected;
  for (int32_t k = 0; k < 50; ++k) keeping.keep.push_back(k * 7);
  std::vector<SparseEntry> chain, forest;
  for (int32_t i = 0; i < 300; ++i) {
    chain.push_back({i, i, 4.0});
    if (i > 0) chain.push_back({i, i - 1, -1.0});
    if (i > 0) chain.push_back({i - 1, i, -1.5});
  }
  int32_t first = 0;
  for (const int32_t m : {4, 5, 6, 7, 8}) {
    for (const SparseEntry& entry : testing::GridEntries(m, 2)) {
      forest.push_back({entry.row + first, entry.column + first, entry.value});
    }
    first += m * m;
  }
  return {{"cube", 1000, testing::GridEntries(10, 3), dissected},
          {"plane", 900, testing::GridEntries(30, 2), dissected},
          {"plane by degree", 900, testing::GridEntries(30, 2), {}},
          {"chain", 300, chain, natural},
          {"forest", first, forest, {}},
          {"kept", 1000, testing::GridEntries(10, 3), keeping},
          {"one", 1, {{0, 0, 2.0}}, {}},
          {"none", 0, {}, {}}};
}

// The matrix of a case, its analysis and its levels.
struct Analyzed {
  static absl::StatusOr<Analyzed> Make(const Case& one) {
    PackedSparse a = testing::PackEntries(one.entries, one.n, DType::kFloat64);
    CROUT_ASSIGN_OR_RETURN(Analysis analysis, Analyze(a.view(), one.options, [] { return false; }));
    LevelPlan levels(analysis);
    return Analyzed{std::move(a), std::move(analysis), std::move(levels)};
  }

  PackedSparse a;
  Analysis analysis;
  LevelPlan levels;
};

// Computes L and U, front by front, in the order of the traversal.
class Elimination {
 public:
  Elimination(const Analysis& analysis, const Traversal& traversal, const PackedSparse& a)
      : analysis_(analysis),
        traversal_(traversal),
        factor_(MultifrontalLayout(analysis, DType::kFloat64).bytes / sizeof(double) + 1),
        contributions_(traversal.contribution_entries(), std::numeric_limits<double>::quiet_NaN()),
        shift_(analysis.fronts()) {
    const SparseView<double> view = a.view().As<double>();
    std::vector<int32_t> of_row(analysis.n), of_column(analysis.n);
    const Positions positions = PlacePositions(analysis, of_row.data(), of_column.data());
    for (int64_t f = 0; f < analysis.fronts(); ++f) {
      const int64_t size = analysis.eliminated(f) + analysis.bordered(f);
      ForFrontEntries(analysis, view, positions, f, 0, size,
                      [&](int64_t e, int32_t, int64_t target) { factor_[target] = view.value[e]; });
    }
  }

  std::vector<double> Run() {
    for (const TraversalStep& step : traversal_.steps()) {
      std::fill_n(contributions_.begin() + step.base, step.entries, 0.0);
      for (int32_t i = step.begin; i < step.end; ++i) {
        const int32_t f = traversal_.order()[i];
        shift_[f] = step.shift;
        Assemble(f);
      }
      for (int32_t i = step.begin; i < step.end; ++i) {
        if (!analysis_.is_kept(traversal_.order()[i])) Factor(traversal_.order()[i]);
      }
    }
    return factor_;
  }

 private:
  FrontFactor<double> At(int64_t f) {
    return FrontAt<double>(analysis_, reinterpret_cast<std::byte*>(factor_.data()), f);
  }
  MatrixView<double> Contribution(int64_t f) {
    const int64_t d2 = analysis_.bordered(f);
    const int64_t at = shift_[f] + analysis_.contribution_start[f];
    if (d2 > 0) {
      EXPECT_GE(at, 0);
      EXPECT_LE(at + d2 * d2, std::ssize(contributions_));
    }
    return {contributions_.data() + at, d2, d2, d2};
  }

  void Assemble(int64_t f) {
    const FrontFactor<double> front = At(f);
    const int64_t d1 = front.panel.cols;
    for (int32_t c = analysis_.child_start[f]; c < analysis_.child_start[f + 1]; ++c) {
      const int32_t child = analysis_.child[c];
      const MatrixView<double> from = Contribution(child);
      const int32_t* const place = analysis_.place_in_parent.data() + analysis_.border_start[child];
      for (int64_t j = 0; j < from.cols; ++j) {
        for (int64_t i = 0; i < from.rows; ++i) {
          double& to = place[j] < d1   ? front.panel(place[i], place[j])
                       : place[i] < d1 ? front.u12(place[i], place[j] - d1)
                                       : Contribution(f)(place[i] - d1, place[j] - d1);
          to += from(i, j);
        }
      }
    }
  }

  // Factors a front without interchanges, because diagonal elements are large.
  void Factor(int64_t f) {
    const FrontFactor<double> front = At(f);
    const int64_t d1 = front.panel.cols;
    const MatrixView<double> rest = Contribution(f);
    const int64_t size = d1 + rest.rows;
    const auto at = [&](int64_t i, int64_t j) -> double& {
      return j < d1 ? front.panel(i, j) : i < d1 ? front.u12(i, j - d1) : rest(i - d1, j - d1);
    };
    for (int64_t k = 0; k < d1; ++k) {
      for (int64_t i = k + 1; i < size; ++i) at(i, k) /= at(k, k);
      for (int64_t j = k + 1; j < size; ++j) {
        for (int64_t i = k + 1; i < size; ++i) at(i, j) -= at(i, k) * at(k, j);
      }
    }
  }

  const Analysis& analysis_;
  const Traversal& traversal_;
  std::vector<double> factor_;
  std::vector<double> contributions_;
  std::vector<int64_t> shift_;
};

// Expects each front exactly once. Its batch must be a part of a batch of the level plan, with the
// same order of fronts.
void ExpectPartsOf(const LevelPlan& levels, const Traversal& traversal) {
  std::vector<int64_t> place(levels.order.size(), -1);  // position in the level plan, by front
  std::vector<const FrontBatch*> batch_of(levels.order.size());
  for (const FrontBatch& batch : levels.batches.all()) {
    EXPECT_EQ(batch.alike, batch.count());
    for (int32_t i = batch.begin; i < batch.end; ++i) {
      place[levels.order[i]] = i;
      batch_of[levels.order[i]] = &batch;
    }
  }
  std::vector<int> seen(levels.order.size());
  for (const TraversalStep& step : traversal.steps()) {
    int32_t next = step.begin;
    for (const FrontBatch& batch : traversal.Batches(step)) {
      EXPECT_EQ(batch.begin, next);
      EXPECT_LT(batch.begin, batch.end);
      next = batch.end;
      for (int32_t i = batch.begin; i < batch.end; ++i) {
        const int32_t f = traversal.order()[i];
        ++seen[f];
        if (i > step.begin) {
          EXPECT_LT(place[traversal.order()[i - 1]], place[f]);
        }
        const FrontBatch& whole = *batch_of[f];
        EXPECT_EQ(batch.level, step.level);
        EXPECT_EQ(batch.level, whole.level);
        EXPECT_EQ(batch.d1, whole.d1);
        EXPECT_EQ(batch.d2, whole.d2);
        EXPECT_EQ(batch.size, whole.size);
        EXPECT_EQ(batch.alike, whole.count());
      }
    }
    EXPECT_EQ(next, step.end);
  }
  EXPECT_EQ(std::ranges::count(seen, 1), std::ssize(seen));
}

// Expects that the contributions of a stage do not overlap each other or those of the preceding
// stage.
void ExpectStagesApart(const Traversal& traversal) {
  const auto apart = [](const TraversalStep& a, const TraversalStep& b) {
    return a.base + a.entries <= b.base || b.base + b.entries <= a.base;
  };
  const TraversalStep* next = traversal.steps().data();
  for (int64_t i = 0; i < traversal.stages(); ++i) {
    const std::span<const TraversalStep> stage = traversal.Stage(i);
    EXPECT_EQ(stage.data(), next);
    next += stage.size();
    for (const TraversalStep& step : stage) {
      EXPECT_GE(step.base, 0);
      EXPECT_LE(step.base + step.entries, traversal.contribution_entries());
      for (const TraversalStep& other : stage) {
        EXPECT_TRUE(&other == &step || apart(step, other));
      }
      if (i == 0) continue;
      for (const TraversalStep& other : traversal.Stage(i - 1)) EXPECT_TRUE(apart(step, other));
    }
  }
  EXPECT_EQ(next, traversal.steps().data() + traversal.steps().size());
}

TEST(TraversalTest, CombinesLevelsOfSmallFronts) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    ASSERT_OK_AND_ASSIGN(const Analyzed analyzed, Analyzed::Make(one));
    const auto& [a, analysis, levels] = analyzed;
    const Traversal traversal(analysis, levels, /*depth=*/0);
    ExpectStagesApart(traversal);
    for (int64_t i = 0; i < traversal.stages(); ++i) {
      const std::span<const TraversalStep> stage = traversal.Stage(i);
      EXPECT_LE(std::ssize(stage), SmallFronts::kMaxBatches / 2);
      if (stage.size() == 1) continue;
      for (const TraversalStep& step : stage) {
        for (int32_t k = step.begin; k < step.end; ++k) {
          const int32_t f = traversal.order()[k];
          EXPECT_TRUE(IsSmallFront(analysis.eliminated(f) + analysis.bordered(f)));
          EXPECT_FALSE(analysis.is_kept(f));
        }
      }
    }
    if (one.name == "chain") {
      // Each stage has the largest permitted number of levels.
      EXPECT_GT(analysis.levels(), SmallFronts::kMaxBatches / 2);
      EXPECT_EQ(traversal.stages(), (analysis.levels() + SmallFronts::kMaxBatches / 2 - 1) /
                                        (SmallFronts::kMaxBatches / 2));
    }
    if (one.name == "kept") {
      EXPECT_EQ(traversal.Stage(traversal.stages() - 1).size(), 1U);
    }
    // At the greatest depth, each stage has one step.
    const Traversal stack(analysis, levels, analysis.levels());
    EXPECT_EQ(stack.stages(), std::ssize(stack.steps()));
  }
}

TEST(TraversalTest, CountsEnqueuedColumns) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    ASSERT_OK_AND_ASSIGN(const Analyzed analyzed, Analyzed::Make(one));
    const auto& [a, analysis, levels] = analyzed;
    for (const int64_t depth : {int64_t{0}, analysis.levels()}) {
      const Traversal traversal(analysis, levels, depth);
      FinalColumns columns(analysis, traversal.order());
      for (int round = 0; round < 2; ++round) {
        int64_t expected = 0;
        EXPECT_EQ(columns.Enqueued(), 0);
        for (const TraversalStep& step : traversal.steps()) {
          for (const FrontBatch& batch : traversal.Batches(step)) columns.Enqueue(batch);
          for (int32_t i = step.begin; i < step.end; ++i) {
            expected += analysis.eliminated(traversal.order()[i]);
          }
          if (step.level % 2 == 0) {
            EXPECT_EQ(columns.Enqueued(), expected);
          }
        }
        EXPECT_EQ(columns.Enqueued(), one.n);
        columns.Restart();
      }
    }
  }
}

TEST(TraversalTest, FactorsCorrectlyInLessMemory) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    ASSERT_OK_AND_ASSIGN(const Analyzed analyzed, Analyzed::Make(one));
    const auto& [a, analysis, levels] = analyzed;
    std::vector<double> expected;
    int64_t entries = analysis.level_pair_entries;
    int64_t depths = 0;
    for (int64_t depth = 0; depth >= 0; depth = NextDepth(analysis, depth)) {
      SCOPED_TRACE(depth);
      const Traversal traversal(analysis, levels, depth);
      ExpectPartsOf(levels, traversal);
      if (depth == 0) {
        EXPECT_GE(traversal.contribution_entries(), analysis.level_pair_entries);
        EXPECT_EQ(std::ssize(traversal.steps()), analysis.levels());
      }
      const std::vector<double> factor = Elimination(analysis, traversal, a).Run();
      EXPECT_TRUE(std::ranges::all_of(factor, [](double v) { return std::isfinite(v); }));
      if (expected.empty()) expected = factor;
      EXPECT_EQ(factor, expected);
      entries = traversal.contribution_entries();
      ++depths;
    }
    // At the greatest depth, the contributions form a stack.
    EXPECT_EQ(entries, analysis.stack_entries);
    if (one.n > 500) {
      EXPECT_GT(depths, 5);
      EXPECT_LT(4 * entries, 3 * analysis.level_pair_entries);
    }
  }
}

}  // namespace
}  // namespace crout::cuda::traversal_test
