#include "kernels/numerics/factor_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/numerics/normalizing_scale.h"

namespace crout {

double ProbeScale(double max_abs) {
  return std::clamp(NormalizingScale(max_abs), 0x1p-500, 0x1p500);
}

double FactorQuality(double probe, const FactorProbe& with, double norm_one, DType factor_dtype) {
  if (!std::isfinite(probe)) return std::numeric_limits<double>::infinity();
  if (probe == 0) return 0;
  const double norm = std::min(norm_one, std::numeric_limits<double>::max()) * with.scale;
  return probe / (std::sqrt(static_cast<double>(with.n)) * norm * UnitRoundoff(factor_dtype));
}

}  // namespace crout
