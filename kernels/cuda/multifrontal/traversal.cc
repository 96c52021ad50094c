// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/multifrontal/traversal.h"

#include <algorithm>
#include <numeric>

#include "kernels/cuda/multifrontal/small_front.h"

namespace crout::cuda {
namespace {

// Limits of a stage with several steps: as many elements as fit in a GPU's L2 cache, and as many
// levels as one kernel handles.
constexpr int64_t kMaxStageEntries = int64_t{1} << 20;
constexpr int64_t kMaxStageSteps = SmallFronts::kMaxBatches / 2;

int64_t EntriesOf(const Analysis& analysis, int64_t f) {
  return analysis.bordered(f) * analysis.bordered(f);
}

}  // namespace

Traversal::Traversal(const Analysis& analysis, const LevelPlan& levels, int64_t depth)
    : levels_(levels), depth_(depth) {
  if (depth == 0) {
    OrderByLevels(analysis);
  } else {
    OrderDepthFirst(analysis);
  }
  FindStages(analysis);
  if (depth == 0) {
    PlaceByStages();
  } else {
    PlaceInStacks();
  }
}

// Does not read individual fronts, because there are many.
void Traversal::OrderByLevels(const Analysis& analysis) {
  const FrontBatch* const all = levels_.batches.all().data();
  for (int64_t level = analysis.levels() - 1; level >= 0; --level) {
    const std::span<const FrontBatch> batches = levels_.batches.Level(level);
    TraversalStep& step = steps_.emplace_back();
    step.level = static_cast<int32_t>(level);
    step.begin = batches.front().begin;
    step.end = batches.back().end;
    step.first_batch = static_cast<int32_t>(batches.data() - all);
    step.last_batch = step.first_batch + static_cast<int32_t>(batches.size());
    step.entries = analysis.level_contribution_entries[level];
  }
}

void Traversal::OrderDepthFirst(const Analysis& analysis) {
  const std::vector<int32_t> step_of = StepsDepthFirst(analysis);
  Order(step_of);
  FindBatches();
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    TraversalStep& step = steps_[step_of[f]];
    // The step's first front has the smallest offset in the contributions of its level.
    if (step.entries == 0) step.shift = -analysis.contribution_start[f];
    step.entries += EntriesOf(analysis, f);
    if (analysis.parent[f] == -1) continue;
    steps_[step_of[analysis.parent[f]]].of_children += EntriesOf(analysis, f);
  }
}

// Visits fronts in postorder, in which the fronts of a subtree are consecutive.
std::vector<int32_t> Traversal::StepsDepthFirst(const Analysis& analysis) {
  std::vector<int32_t> level(analysis.fronts()), step_of(analysis.fronts());
  for (int64_t f = analysis.fronts() - 1; f >= 0; --f) {
    if (analysis.parent[f] != -1) level[f] = level[analysis.parent[f]] + 1;
  }
  int64_t first = 0;  // first front of the subtree
  int32_t deepest = 0;
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    deepest = std::max(deepest, level[f]);
    if (level[f] > depth_) continue;
    // A front at a depth of less than depth_ gets its own step. Otherwise the whole subtree gets
    // one step per level, from its deepest level on.
    const auto last_step = static_cast<int32_t>(steps_.size()) + deepest - level[f];
    for (int64_t g = first; g <= f; ++g) step_of[g] = last_step - (level[g] - level[f]);
    for (int32_t v = deepest; v >= level[f]; --v) steps_.emplace_back().level = v;
    first = f + 1;
    deepest = 0;
  }
  return step_of;
}

void Traversal::Order(const std::vector<int32_t>& step_of) {
  std::vector<int32_t> next(steps_.size() + 1);
  for (const int32_t step : step_of) ++next[step + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (size_t s = 0; s < steps_.size(); ++s) {
    steps_[s].begin = next[s];
    steps_[s].end = next[s + 1];
  }
  order_.resize(step_of.size());
  for (const int32_t f : levels_.order) order_[next[step_of[f]]++] = f;
}

void Traversal::FindBatches() {
  std::vector<int32_t> batch_of(order_.size());  // the LevelPlan batch of each front
  const std::vector<FrontBatch>& whole = levels_.batches.all();
  for (size_t b = 0; b < whole.size(); ++b) {
    for (int32_t i = whole[b].begin; i < whole[b].end; ++i) {
      batch_of[levels_.order[i]] = static_cast<int32_t>(b);
    }
  }
  for (TraversalStep& step : steps_) {
    step.first_batch = static_cast<int32_t>(batches_.size());
    for (int32_t i = step.begin; i < step.end;) {
      FrontBatch part = whole[batch_of[order_[i]]];
      part.begin = i;
      while (i < step.end && batch_of[order_[i]] == batch_of[order_[part.begin]]) ++i;
      part.end = i;
      batches_.push_back(part);
    }
    step.last_batch = static_cast<int32_t>(batches_.size());
  }
}

void Traversal::FindStages(const Analysis& analysis) {
  const auto has_small_alone = [&](const TraversalStep& step) {
    return depth_ == 0 && !(step.level == 0 && analysis.kept > 0) &&
           IsSmallFront(Batches(step).front().size);
  };
  bool together = false;  // whether the last stage may get more steps
  int64_t entries = 0;    // entries of the last stage
  int64_t steps = 0;
  for (size_t s = 0; s < steps_.size(); ++s) {
    const bool small = has_small_alone(steps_[s]);
    if (together && small && steps < kMaxStageSteps &&
        entries + steps_[s].entries <= kMaxStageEntries) {
      stage_end_.back() = static_cast<int32_t>(s + 1);
      entries += steps_[s].entries;
      ++steps;
      continue;
    }
    stage_end_.push_back(static_cast<int32_t>(s + 1));
    together = small;
    entries = steps_[s].entries;
    steps = 1;
  }
}

// The contributions of a stage are used by the same stage or the next one.
void Traversal::PlaceByStages() {
  int64_t last = 0;  // entries of the previous stage
  for (int64_t i = 0; i < stages(); ++i) {
    int64_t entries = 0;
    for (const TraversalStep& step : Stage(i)) {
      steps_[&step - steps_.data()].base = entries;
      entries += step.entries;
    }
    contribution_entries_ = std::max(contribution_entries_, last + entries);
    last = entries;
  }
  for (int64_t i = 0; i < stages(); ++i) {
    for (const TraversalStep& of_stage : Stage(i)) {
      TraversalStep& step = steps_[&of_stage - steps_.data()];
      if (i % 2 == 1) step.base = contribution_entries_ - step.base - step.entries;
      step.shift += step.base;
    }
  }
}

void Traversal::PlaceInStacks() {
  int64_t top[2] = {0, 0};
  for (TraversalStep& step : steps_) {
    int64_t& end = top[step.level % 2];
    step.base = end;
    end += step.entries;
    contribution_entries_ = std::max(contribution_entries_, top[0] + top[1]);
    top[(step.level + 1) % 2] -= step.of_children;
  }
  for (TraversalStep& step : steps_) {
    if (step.level % 2 == 1) step.base = contribution_entries_ - step.base - step.entries;
    step.shift += step.base;
  }
}

int64_t NextDepth(const Analysis& analysis, int64_t depth) {
  if (depth >= analysis.levels()) return -1;
  constexpr int64_t kOneByOne = 8;
  return std::min(analysis.levels(), depth < kOneByOne ? depth + 1 : depth + depth / 2);
}

}  // namespace crout::cuda
