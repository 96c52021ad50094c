// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/multifrontal/numeric_workspace.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "kernels/cuda/multifrontal/assembly.h"
#include "kernels/cuda/multifrontal/factor_block.h"
#include "kernels/cuda/multifrontal/front_lu.h"
#include "kernels/cuda/multifrontal/inspection.h"

namespace crout::cuda {

NumericWorkspace::NumericWorkspace(const LuPanelKernels& kernels, const Analysis& analysis,
                                   const LevelPlan& levels, const Traversal& traversal,
                                   DType dtype) {
  BlockPlan plan(0);
  const size_t n = analysis.n;
  const size_t members = analysis.fronts() * sizeof(BatchMember);
  report = plan.Add(sizeof(NumericReport));
  pivot_flags = plan.Add(n);
  const auto stages = static_cast<size_t>(traversal.stages());
  arrivals = plan.Add((analysis.fronts() + stages) * sizeof(int32_t));
  zero_bytes = plan.end() - report;
  const auto add = [&plan](const auto& array) { return plan.Add(std::span(array).size_bytes()); };
  factor_start = add(analysis.factor_start);
  contribution_start = add(analysis.contribution_start);
  border_start = add(analysis.border_start);
  const size_t steps = traversal.steps().size();
  shift = plan.Add(steps * sizeof(int64_t));
  step_start = plan.Add(steps * sizeof(int32_t));
  order = plan.Add(traversal.depth() == 0 ? 0 : analysis.fronts() * sizeof(int32_t));
  first_position = add(analysis.first_position);
  parent = add(analysis.parent);
  child_start = add(analysis.child_start);
  large = plan.Add(analysis.fronts() * sizeof(int32_t));
  border = add(analysis.border);
  position_of_row = plan.Add(n * sizeof(int32_t));
  position_of_column = plan.Add(n * sizeof(int32_t));
  front_of = plan.Add(n * sizeof(int32_t));
  least = plan.Add(n * SizeOf(RealOf(dtype)));
  ipiv = plan.Add(n * sizeof(int64_t));
  info = plan.Add(analysis.fronts() * sizeof(int32_t));
  f11 = plan.Add(members);
  f21 = plan.Add(members);
  f12 = plan.Add(members);
  f22 = plan.Add(members);
  contributions = plan.Add(traversal.contribution_entries() * SizeOf(dtype));
  front_lu_bytes = FrontLuWorkspaceBytes(kernels, analysis, levels, dtype);
  front_lu = plan.Add(front_lu_bytes);
  cublas_bytes = FrontLuCublasBytes(levels);
  cublas = plan.Add(cublas_bytes);
  bytes = plan.end();
}

Traversal TraversalWithin(const LuPanelKernels& kernels, const Analysis& analysis,
                          const LevelPlan& levels, DType dtype, size_t most) {
  std::optional<Traversal> best;
  size_t least = 0;
  for (int64_t depth = 0; depth >= 0; depth = NextDepth(analysis, depth)) {
    Traversal traversal(analysis, levels, depth);
    const size_t bytes = NumericWorkspace(kernels, analysis, levels, traversal, dtype).bytes;
    if (bytes <= most) return traversal;
    if (best && bytes >= least) continue;
    best.emplace(std::move(traversal));
    least = bytes;
  }
  return *std::move(best);
}

}  // namespace crout::cuda
