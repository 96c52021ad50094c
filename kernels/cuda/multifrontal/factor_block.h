// SPDX-License-Identifier: Apache-2.0

// The data that the CUDA device stores after a factor's fronts, in the same block. Solves read
// them.
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

// Places arrays one after the other in a block of memory, each at a multiple of 256 bytes.
class BlockPlan {
 public:
  explicit BlockPlan(size_t begin) : end_(begin) {}

  // Returns the offset of an array of `bytes` bytes.
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

// Offsets in the block: MultifrontalLayout's, followed by the parts of the analysis that solves
// need. Solves therefore do not send these parts again. They move with the factor and count toward
// its bytes. The arrays from `fronts` up to `permutation` depend only on the analysis and on
// `depth`, and are the same in all factors with both.
struct FactorBlock {
  FactorBlock(const Analysis& analysis, DType dtype);

  size_t pivots;  // MultifrontalLayout::pivots
  size_t fronts;  // Front[fronts]
  size_t order;   // int32[fronts]: LevelPlan::order
  // int32, directly after `order`: depth of the Traversal that placed the contributions in
  // `fronts`.
  size_t depth;
  // FrontBatch[LevelPlan::MaxBatches]: LevelBatches::all, terminated by a batch without fronts.
  size_t batches;
  size_t child;        // int32: Analysis::child
  size_t place;        // int32: Analysis::place_in_parent
  size_t rows;         // int32[n]: Analysis::row_order
  size_t columns;      // int32[n]: Analysis::column_order
  size_t scales;       // double[2 n]: of rows, then of columns; the offset is 0 if there are none
  size_t permutation;  // int32[n]: PivotRecord::permutation
  size_t diagonal;     // dtype[n]: PivotRecord::diagonal
  size_t bytes;
};

// Front f in the form that kernels use. `shift` is the TraversalStep::shift of its step.
Front MakeFront(const Analysis& analysis, int64_t f, int64_t shift);

// Read the parts of a factor in device memory that hold its analysis' LevelPlan. This takes the
// host less time than computing them again. Both block until the work enqueued on the context has
// ended.
absl::StatusOr<LevelBatches> ReadLevelBatches(Context& context, const Analysis& analysis,
                                              const FactorBlock& block, const std::byte* factor);
struct StoredLevelPlan {
  LevelPlan levels;
  int32_t depth = 0;
};
absl::StatusOr<StoredLevelPlan> ReadLevelPlan(Context& context, const Analysis& analysis,
                                              const FactorBlock& block, const std::byte* factor);

FrontTree FrontTreeOf(const Analysis& analysis, const FactorBlock& block, const std::byte* factor);
FrontScales FrontScalesOf(const Analysis& analysis, const FactorBlock& block,
                          const std::byte* factor);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FACTOR_BLOCK_H_
