// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/multifrontal/factor_block.h"

#include <algorithm>
#include <utility>

#include "kernels/util/status_macros.h"

namespace crout::cuda {

FactorBlock::FactorBlock(const Analysis& analysis, DType dtype) {
  const MultifrontalLayout layout(analysis, dtype);
  pivots = layout.pivots;
  BlockPlan plan(layout.bytes);
  fronts = plan.Add(analysis.fronts() * sizeof(Front));
  order = plan.Add((analysis.fronts() + 1) * sizeof(int32_t));
  depth = order + analysis.fronts() * sizeof(int32_t);
  batches = plan.Add(LevelPlan::MaxBatches(analysis) * sizeof(FrontBatch));
  child = plan.Add(analysis.child.size() * sizeof(int32_t));
  place = plan.Add(analysis.place_in_parent.size() * sizeof(int32_t));
  rows = plan.Add(analysis.n * sizeof(int32_t));
  columns = plan.Add(analysis.n * sizeof(int32_t));
  scales = analysis.row_scale.empty() ? 0 : plan.Add(2 * analysis.n * sizeof(double));
  permutation = plan.Add(analysis.n * sizeof(int32_t));
  diagonal = plan.Add(analysis.n * SizeOf(dtype));
  bytes = plan.end();
}

Front MakeFront(const Analysis& analysis, int64_t f, int64_t shift) {
  return {analysis.factor_start[f],
          shift + analysis.contribution_start[f],
          analysis.border_start[f],
          analysis.first_position[f],
          static_cast<int32_t>(analysis.eliminated(f)),
          static_cast<int32_t>(analysis.bordered(f)),
          analysis.parent[f],
          analysis.child_start[f],
          analysis.child_start[f + 1]};
}

absl::StatusOr<LevelBatches> ReadLevelBatches(Context& context, const Analysis& analysis,
                                              const FactorBlock& block, const std::byte* factor) {
  // Reads few batches first, because the host waits for them; they suffice for most trees.
  constexpr int64_t kFirst = 256;
  const int64_t most = LevelPlan::MaxBatches(analysis);
  std::vector<FrontBatch> batches;
  for (int64_t count = std::min(kFirst, most);; count = std::min(8 * count, most)) {
    batches.resize(count);
    CROUT_RETURN_IF_ERROR(context.ops().CopyToHost(factor + block.batches, batches.data(),
                                                   count * sizeof(FrontBatch)));
    CROUT_RETURN_IF_ERROR(context.Synchronize());
    const auto end = std::find_if(batches.begin(), batches.end(),
                                  [](const FrontBatch& batch) { return batch.count() == 0; });
    if (end == batches.end() && count < most) continue;
    batches.erase(end, batches.end());
    return LevelBatches(std::move(batches), analysis.levels());
  }
}

absl::StatusOr<StoredLevelPlan> ReadLevelPlan(Context& context, const Analysis& analysis,
                                              const FactorBlock& block, const std::byte* factor) {
  StoredLevelPlan plan;
  std::vector<int32_t>& order = plan.levels.order;
  order.resize(analysis.fronts() + 1);
  CROUT_RETURN_IF_ERROR(
      context.ops().CopyToHost(factor + block.order, order.data(), order.size() * sizeof(int32_t)));
  CROUT_ASSIGN_OR_RETURN(plan.levels.batches, ReadLevelBatches(context, analysis, block, factor));
  plan.depth = order.back();
  order.pop_back();
  return plan;
}

FrontTree FrontTreeOf(const Analysis& analysis, const FactorBlock& block, const std::byte* factor) {
  return {reinterpret_cast<const Front*>(factor + block.fronts),
          static_cast<int>(analysis.fronts()),
          reinterpret_cast<const int32_t*>(factor + block.child),
          reinterpret_cast<const int32_t*>(factor + block.place)};
}

FrontScales FrontScalesOf(const Analysis& analysis, const FactorBlock& block,
                          const std::byte* factor) {
  if (block.scales == 0) return {};
  const auto* const scales = reinterpret_cast<const double*>(factor + block.scales);
  return {scales, scales + analysis.n};
}

}  // namespace crout::cuda
