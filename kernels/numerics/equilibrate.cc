#include "kernels/numerics/equilibrate.h"

#include <limits>

namespace crout {
namespace {

constexpr double kWorthScaling = 0.1;

template <class T>
double SmallestSafe() {
  return static_cast<double>(std::numeric_limits<T>::min()) /
         static_cast<double>(std::numeric_limits<T>::epsilon());
}

}  // namespace

ScaleDecision DecideScaling(EquilibrateMode mode, const ScaleStats& stats, DType factor_dtype) {
  if (mode == EquilibrateMode::kOff || stats.zero_line > 0) return {};
  if (mode == EquilibrateMode::kOn) return {true, true};
  const double small =
      RealOf(factor_dtype) == DType::kFloat32 ? SmallestSafe<float>() : SmallestSafe<double>();
  const bool out_of_range = stats.max_abs < small || stats.max_abs > 1 / small;
  return {stats.row_condition < kWorthScaling || out_of_range, stats.col_condition < kWorthScaling};
}

}  // namespace crout
