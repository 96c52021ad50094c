// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/icm/icm_plan.h"

#include <algorithm>

#include "kernels/cuda/icm/icm_panel.h"
#include "kernels/cuda/icm/icm_state.h"
#include "kernels/cuda/icm/section_sweeps.h"
#include "kernels/icm/sections.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// Measured. A section that is searched by columns is best as small as a tile, because the products
// between sections are faster. A section that is swept whole should be larger, to amortize its
// launches.
constexpr int64_t kSearchedSection = 32;
constexpr int64_t kSweptSection = 128;
constexpr int64_t kSweptSectionOfLarge = 64;
constexpr int64_t kLarge = 6000;
constexpr int64_t kBlock = 256;

int64_t DefaultSection(DType dtype, int64_t n, bool sweeps_first) {
  if (!sweeps_first) return kSearchedSection;
  // For complex128, a triangle of kSweptSection would not stay in shared memory between sweeps.
  const bool large = n >= kLarge || SizeOf(dtype) > sizeof(double);
  return large ? kSweptSectionOfLarge : kSweptSection;
}

int64_t MaxSection(DType dtype, const DeviceLimits& limits, bool searches) {
  const int64_t swept = MaxSweptUnknowns(dtype, limits);
  return searches ? std::min(swept, MaxSearchedColumns(dtype, limits)) : swept;
}

int64_t SectionSize(DType dtype, int64_t n, const LuParameters& parameters, bool sweeps_first,
                    int64_t most) {
  const int64_t wanted = parameters.section_size > 0 ? parameters.section_size
                                                     : DefaultSection(dtype, n, sweeps_first);
  return std::min(RoundedUp(std::min(wanted, most), kIcmTile), most);
}

void ComputeLayout(DType dtype, int multiprocessors, IcmPlan& plan) {
  WorkspaceLayout layout;
  const size_t element = SizeOf(dtype);
  plan.state = layout.Take(1, sizeof(IcmState));
  plan.sweeps = layout.Take(plan.sections * plan.sections, sizeof(int32_t));
  plan.pivots = layout.Take(plan.sections, sizeof(int32_t));
  plan.candidates = layout.Take(2 * multiprocessors, sizeof(IcmCandidate));
  plan.moves = layout.Take(2 * plan.section, sizeof(IcmMove));
  plan.largest = layout.Take(plan.section, sizeof(unsigned long long));
  for (size_t& buffer : plan.buffers) buffer = layout.Take(plan.section * plan.section, element);
  if (plan.sweeps_first) plan.below = layout.Take(plan.n * plan.section, element);
  if (plan.warm) {
    plan.origin = layout.Take(plan.n, sizeof(int32_t));
    plan.permutations = layout.Take(2 * plan.n, sizeof(int64_t));
    plan.scratch = layout.Take(plan.n * std::max<int64_t>(multiprocessors, 2), element);
  }
  plan.bytes = layout.total();
}

}  // namespace

bool IcmFits(DType dtype, const DeviceLimits& limits, bool pivoting) {
  return MaxSection(dtype, limits, pivoting) >= kSweptSection;
}

absl::StatusOr<IcmPlan> PlanIcm(DType dtype, int64_t n, const LuParameters& parameters,
                                PivotRule default_rule, const DeviceLimits& limits) {
  // PositionKey uses 21 bits per index.
  if (n < 0 || n >= int64_t{1} << 21) {
    return absl::InvalidArgumentError(
        "the iterative Crout method supports orders below 2^21. Use another algorithm");
  }
  IcmPlan plan;
  plan.n = n;
  plan.warm = parameters.start.has_value();
  // Keep the pivots of a start while they are acceptable; the partial rule would choose others.
  const bool relaxed = plan.warm && default_rule == PivotRule::kPartial;
  plan.criterion.rule = relaxed ? PivotRule::kThreshold : default_rule;
  if (parameters.pivoting.has_value()) plan.criterion = *parameters.pivoting;
  plan.searches = plan.criterion.rule != PivotRule::kNone;
  plan.sweeps_first = plan.warm || plan.criterion.rule == PivotRule::kNone ||
                      plan.criterion.rule == PivotRule::kInterval;
  plan.section = SectionSize(dtype, n, parameters, plan.sweeps_first,
                             MaxSection(dtype, limits, plan.searches));
  plan.block = std::max(plan.section, RoundedUp(kBlock, plan.section));
  plan.sections = (n + plan.section - 1) / plan.section;
  ComputeLayout(dtype, limits.multiprocessors, plan);
  return plan;
}

}  // namespace crout::cuda
