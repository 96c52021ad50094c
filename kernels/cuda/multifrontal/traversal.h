// SPDX-License-Identifier: Apache-2.0

// The order in which the fronts of a tree are factored, and the placement of their contributions.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_TRAVERSAL_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_TRAVERSAL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/multifrontal/level_plan.h"
#include "kernels/sparse/analysis.h"

namespace crout::cuda {

// Fronts of one level whose children all belong to earlier steps. Their contributions are
// contiguous.
struct TraversalStep {
  int32_t level = 0;
  int32_t begin = 0;  // fronts: [begin, end) of Traversal::order
  int32_t end = 0;
  int32_t first_batch = 0;  // batches: [first_batch, last_batch) of Traversal::Batches' array
  int32_t last_batch = 0;
  // Contributions of the step, in elements of their memory: `base` is the first element and
  // `entries` the number of elements. `of_children` is the number of elements of its fronts'
  // children (not set with depth 0). The contribution of front f begins at shift +
  // Analysis::contribution_start[f].
  int64_t base = 0;
  int64_t entries = 0;
  int64_t of_children = 0;
  int64_t shift = 0;
};

// A function of the analysis and of `depth`. The first `depth` levels from the roots are traversed
// front by front, depth first. Each subtree below them is processed level by level before the next
// one begins. With depth 0, the whole tree is processed level by level, in the fewest steps. With
// any other depth, fewer contributions exist at a time. The bits of a front do not depend on the
// depth: batches are parts of LevelPlan's batches and keep their sizes.
//
// A stage is one step or, with depth 0, successive steps of small fronts with few contributions in
// total. The levels of such a stage may be processed at once, each front as soon as its children
// are done.
//
// Contributions of even levels (with depth 0: of even stages) are stored from one end of their
// memory, those of odd ones from the other end. Each end is a stack: the children of a front are
// processed right before it. Only deeper fronts are processed in between, and their contributions
// are no longer needed by then.
class Traversal {
 public:
  // `levels` outlives the object.
  Traversal(const Analysis& analysis, const LevelPlan& levels, int64_t depth);

  int64_t depth() const { return depth_; }
  const std::vector<TraversalStep>& steps() const { return steps_; }
  // All steps, stage by stage.
  int64_t stages() const { return static_cast<int64_t>(stage_end_.size()); }
  std::span<const TraversalStep> Stage(int64_t i) const {
    const int64_t begin = i == 0 ? 0 : stage_end_[i - 1];
    return {steps_.data() + begin, steps_.data() + stage_end_[i]};
  }
  // All fronts, step by step, and within a step in LevelPlan's order.
  std::span<const int32_t> order() const {
    return depth_ == 0 ? std::span<const int32_t>(levels_.order) : order_;
  }
  std::span<const FrontBatch> Batches(const TraversalStep& step) const {
    const std::vector<FrontBatch>& all = depth_ == 0 ? levels_.batches.all() : batches_;
    return {all.data() + step.first_batch, all.data() + step.last_batch};
  }
  // Size of the contributions' memory, in elements.
  int64_t contribution_entries() const { return contribution_entries_; }

 private:
  void OrderByLevels(const Analysis& analysis);
  void OrderDepthFirst(const Analysis& analysis);
  // Creates the steps, with only their levels set, and returns the step of each front.
  std::vector<int32_t> StepsDepthFirst(const Analysis& analysis);
  void Order(const std::vector<int32_t>& step_of);
  void FindBatches();
  void FindStages(const Analysis& analysis);
  void PlaceByStages();
  void PlaceInStacks();

  const LevelPlan& levels_;
  const int64_t depth_;
  std::vector<TraversalStep> steps_;
  std::vector<int32_t> stage_end_;  // by stage: end index in steps_
  std::vector<int32_t> order_;      // unused with depth 0, like batches_
  std::vector<FrontBatch> batches_;
  int64_t contribution_entries_ = 0;
};

// The depth to try after this one if the memory does not suffice, or -1 if there is none. The last
// depth is analysis.levels().
int64_t NextDepth(const Analysis& analysis, int64_t depth);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_TRAVERSAL_H_
