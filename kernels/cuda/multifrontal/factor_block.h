// What the CUDA device keeps behind a factor's fronts, in the same block: what its solves read.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FACTOR_BLOCK_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FACTOR_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/multifrontal/assembly.h"
#include "kernels/cuda/multifrontal/front.h"
#include "kernels/cuda/multifrontal/level_plan.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"

namespace crout::cuda {

// Arrays that follow each other in one block of memory, each from a multiple of 256 bytes on.
class BlockPlan {
 public:
  explicit BlockPlan(size_t begin) : end_(begin) {}

  // Where an array of so many bytes begins.
  size_t Add(size_t bytes) {
    const size_t begin = (end_ + kAlignment - 1) / kAlignment * kAlignment;
    end_ = begin + bytes;
    return begin;
  }
  size_t end() const { return end_; }

 private:
  static constexpr size_t kAlignment = 256;
  size_t end_;
};

// Offsets in the block: MultifrontalLayout's, and behind it what solves need of the analysis, so
// that none of them sends it again: it moves with the factor and is part of its bytes. What is from
// `fronts` up to `permutation` follows from the analysis and from `depth` alone, and is the same in
// all factors by both.
struct FactorBlock {
  FactorBlock(const Analysis& analysis, DType dtype);

  size_t pivots;   // MultifrontalLayout::pivots
  size_t fronts;   // Front[fronts]
  size_t order;    // int32[fronts]: LevelPlan::order
  size_t depth;    // int32, right behind it: of the Traversal whose contributions `fronts` say
  size_t batches;  // FrontBatch[LevelPlan::MostBatches]: LevelBatches::all, and one without fronts
  size_t child;    // int32: Analysis::child
  size_t place;    // int32: Analysis::place_in_parent
  size_t rows;     // int32[n]: Analysis::row_order
  size_t columns;  // int32[n]: column_order
  size_t scales;   // double[2 n], of rows, then of columns; where there are none, 0
  size_t permutation;  // int32[n]: PivotRecord::permutation
  size_t diagonal;     // of type dtype[n]: PivotRecord::diagonal
  size_t bytes;
};

// Front f, of a step with that TraversalStep::shift, as kernels know it.
Front MakeFront(const Analysis& analysis, int64_t f, int64_t shift);

// What a factor in device memory holds of its analysis' LevelPlan. Reading them takes the host less
// time than finding them anew. Block until the work that is enqueued on the context has ended.
absl::StatusOr<LevelBatches> BatchesIn(Context& context, const Analysis& analysis,
                                       const FactorBlock& block, const std::byte* factor);
struct PlanInFactor {
  LevelPlan levels;
  int32_t depth = 0;
};
absl::StatusOr<PlanInFactor> PlanIn(Context& context, const Analysis& analysis,
                                    const FactorBlock& block, const std::byte* factor);

FrontTree TreeIn(const Analysis& analysis, const FactorBlock& block, const std::byte* factor);
FrontScales ScalesIn(const Analysis& analysis, const FactorBlock& block, const std::byte* factor);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FACTOR_BLOCK_H_
