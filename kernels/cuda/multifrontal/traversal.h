// In which order the fronts of a tree are factored, and where their contributions wait.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_TRAVERSAL_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_TRAVERSAL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/multifrontal/level_plan.h"
#include "kernels/sparse/analysis.h"

namespace crout::cuda {

// Fronts of one level, whose children all belong to steps before. Their contributions lie side by
// side.
struct TraversalStep {
  int32_t level = 0;
  int32_t begin = 0;  // fronts: of Traversal::order
  int32_t end = 0;
  int32_t first_batch = 0;  // of Traversal::Batches
  int32_t last_batch = 0;   // behind it
  // Of the contributions, in elements of their memory: where they begin, and how many there are, of
  // the step and, but with depth 0, of its fronts' children; that of front f begins at shift +
  // Analysis::contribution_start[f].
  int64_t base = 0;
  int64_t entries = 0;
  int64_t of_children = 0;
  int64_t shift = 0;
};

// A function of the analysis and of `depth`: so many levels, from the roots on, are walked front by
// front and depth first, and each subtree below them is done level by level before the next one is
// begun. With depth 0 the whole tree is done level by level, in the fewest steps; with any other
// fewer contributions wait at a time. What becomes of a front does not depend on it, to the bit:
// batches are parts of those of LevelPlan, with their sizes.
//
// A stage is a step, or, with depth 0, successive steps of small fronts whose contributions are few
// in all: so many levels may be done at once, each front as soon as its children are.
//
// Contributions of even levels, with depth 0 of even stages, wait at the one end of their memory,
// those of odd ones at the other. At each end the last that came is the first that goes: children
// are done right before their parent, but for deeper ones, which are gone by then.
class Traversal {
 public:
  // `levels` outlives it.
  Traversal(const Analysis& analysis, const LevelPlan& levels, int64_t depth);

  int64_t depth() const { return depth_; }
  const std::vector<TraversalStep>& steps() const { return steps_; }
  // All steps, stage after stage.
  int64_t stages() const { return static_cast<int64_t>(stage_end_.size()); }
  std::span<const TraversalStep> Stage(int64_t i) const {
    const int64_t begin = i == 0 ? 0 : stage_end_[i - 1];
    return {steps_.data() + begin, steps_.data() + stage_end_[i]};
  }
  // All fronts, those of a step together, and within one as LevelPlan has them.
  std::span<const int32_t> order() const {
    return depth_ == 0 ? std::span<const int32_t>(levels_.order) : order_;
  }
  std::span<const FrontBatch> Batches(const TraversalStep& step) const {
    const std::vector<FrontBatch>& all = depth_ == 0 ? levels_.batches.all() : batches_;
    return {all.data() + step.first_batch, all.data() + step.last_batch};
  }
  // Elements of the contributions' memory.
  int64_t contribution_entries() const { return contribution_entries_; }

 private:
  void GoByLevels(const Analysis& analysis);
  void GoDepthFirst(const Analysis& analysis);
  // Makes the steps, of which only the levels are known then, and gives that of each front.
  std::vector<int32_t> StepsDepthFirst(const Analysis& analysis);
  void Order(const std::vector<int32_t>& step_of);
  void FindBatches();
  void FindStages(const Analysis& analysis);
  void PlaceByStages();
  void PlaceInStacks();

  const LevelPlan& levels_;
  const int64_t depth_;
  std::vector<TraversalStep> steps_;
  std::vector<int32_t> stage_end_;   // by stages, of steps_
  std::vector<int32_t> order_;       // with depth 0 that of levels_, as the next
  std::vector<FrontBatch> batches_;  //
  int64_t contribution_entries_ = 0;
};

// The depth that is tried after this one, where the memory does not suffice; the last is
// analysis.levels(). -1: none.
int64_t NextDepth(const Analysis& analysis, int64_t depth);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_TRAVERSAL_H_
