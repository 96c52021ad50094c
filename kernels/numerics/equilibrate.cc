// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/equilibrate.h"

#include "kernels/dtype.h"

namespace crout {
namespace {

constexpr double kScalingThreshold = 0.1;

}  // namespace

ScaleDecision DecideScaling(EquilibrateMode mode, const ScaleStats& stats, DType factor_dtype) {
  if (mode == EquilibrateMode::kOff || stats.zero_line > 0) return {};
  if (mode == EquilibrateMode::kOn) return {true, true};
  const bool out_of_range = !SafeRangeOf(factor_dtype).contains(stats.max_abs);
  return {stats.row_condition < kScalingThreshold || out_of_range,
          stats.col_condition < kScalingThreshold};
}

}  // namespace crout
