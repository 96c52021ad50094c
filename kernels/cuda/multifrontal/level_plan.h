// How a GPU takes the fronts of a level: those of like sizes by the same launches.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_LEVEL_PLAN_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_LEVEL_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/multifrontal/front.h"
#include "kernels/sparse/analysis.h"

namespace crout::cuda {

// Fronts of one level whose d1 have the same class, and their d2, too; or small fronts of any.
struct FrontBatch {
  int32_t begin;  // of LevelPlan::order
  int32_t end;
  int32_t level;
  int32_t d1;        // the largest of them, as the next two
  int32_t d2;        //
  int32_t size;      // d1 + d2 of one front
  int32_t children;  // of one front, the most
  // How many of these classes the whole level has: how fronts are factored depends on it, and not
  // on how many of them are done together.
  int32_t alike;

  int32_t count() const { return end - begin; }
};

// The batches of a tree, level by level. Of a level those of larger d1 come first, and of these
// those of larger d2; small fronts (small_front.h) are the last, two batches at most.
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

// Of a whole tree. A function of the analysis alone.
struct LevelPlan {
  LevelPlan() = default;
  explicit LevelPlan(const Analysis& analysis);

  // All fronts, level by level and batch by batch; within one, where d1 is above 32, larger d1
  // first.
  std::vector<int32_t> order;
  LevelBatches batches;

  // The fronts of at least so many columns.
  std::vector<int32_t> OfColumns(const Analysis& analysis, int32_t d1) const;

  // More batches than any plan for this analysis has.
  static int64_t MostBatches(const Analysis& analysis);
};

// Successive batches as one set; `order`: LevelPlan::order in device memory. Empty of none.
FrontSet SetOf(std::span<const FrontBatch> batches, const int32_t* order);

// Calls f(FrontSet) for sets of successive batches that together are the given ones: as few as
// leave no more idle than busy blocks, where a set takes for each of its fronts as many blocks of
// `rows` rows as its largest has.
template <class F>
void ForSets(std::span<const FrontBatch> batches, const int32_t* order, int64_t rows, F f) {
  constexpr int64_t kFew = 512;  // idle ones that are no matter
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
