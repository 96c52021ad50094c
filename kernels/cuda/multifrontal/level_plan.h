// SPDX-License-Identifier: Apache-2.0

// Groups the fronts of a level for a GPU: fronts of similar size share launches.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_LEVEL_PLAN_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_LEVEL_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/multifrontal/front.h"
#include "kernels/sparse/analysis.h"

namespace crout::cuda {

// Fronts of one level: either fronts with d1 in one class and d2 in one class, or small fronts of
// any size.
struct FrontBatch {
  int32_t begin;  // index in LevelPlan::order
  int32_t end;
  int32_t level;
  int32_t d1;  // maximum over the fronts, like the next two
  int32_t d2;
  int32_t size;      // maximum of d1 + d2
  int32_t children;  // maximum per front
  // The number of fronts of these classes in the whole level. It determines how fronts are
  // factored; the number of fronts that are processed together does not.
  int32_t alike;

  int32_t count() const { return end - begin; }
};

// The batches of a tree, level by level. Within a level, they are ordered by decreasing class of
// d1, then of d2. Small fronts (small_front.h) come last, in at most two batches.
class LevelBatches {
 public:
  LevelBatches() = default;
  LevelBatches(std::vector<FrontBatch> batches, int64_t levels);

  const std::vector<FrontBatch>& all() const { return batches_; }
  std::span<const FrontBatch> Level(int64_t level) const {
    return {batches_.data() + level_begin_[level], batches_.data() + level_begin_[level + 1]};
  }

 private:
  std::vector<FrontBatch> batches_;
  std::vector<int32_t> level_begin_;  // levels + 1
};

// The plan of a whole tree. A function of the analysis alone.
struct LevelPlan {
  LevelPlan() = default;
  explicit LevelPlan(const Analysis& analysis);

  // All fronts, level by level and batch by batch. Batches with d1 above 32 are sorted by
  // decreasing d1.
  std::vector<int32_t> order;
  LevelBatches batches;

  // The fronts with at least `d1` columns.
  std::vector<int32_t> FrontsWithColumns(const Analysis& analysis, int32_t d1) const;

  // An upper bound on the number of batches for this analysis; greater than that of any plan.
  static int64_t MaxBatches(const Analysis& analysis);
};

// Combines successive batches into one set; empty for no batches. `order`: LevelPlan::order in
// device memory.
FrontSet SetOf(std::span<const FrontBatch> batches, const int32_t* order);

// Calls f(FrontSet) for sets of successive batches that together cover `batches`. For each of its
// fronts, a set launches as many blocks of `rows` rows as its largest front needs. Uses as few sets
// as possible, as long as idle blocks do not outnumber busy ones.
template <class F>
void ForSets(std::span<const FrontBatch> batches, const int32_t* order, int64_t rows, F f) {
  constexpr int64_t kFew = 512;  // number of idle blocks that is always acceptable
  const auto blocks = [&](const FrontSet& set) { return set.count * (set.size / rows + 1); };
  while (!batches.empty()) {
    size_t taken = 1;
    FrontSet set = SetOf(batches.first(1), order);
    int64_t busy = blocks(set);
    for (; taken < batches.size(); ++taken) {
      const FrontSet larger = SetOf(batches.first(taken + 1), order);
      busy += blocks(SetOf(batches.subspan(taken, 1), order));
      if (blocks(larger) > 2 * busy + kFew) break;
      set = larger;
    }
    f(set);
    batches = batches.subspan(taken);
  }
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_LEVEL_PLAN_H_
