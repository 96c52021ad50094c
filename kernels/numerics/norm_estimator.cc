#include "kernels/numerics/norm_estimator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr int kMaxIterations = 5;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double SumAbs(std::span<const double> x) {
  double sum = 0;
  for (double v : x) sum += std::abs(v);
  return sum;
}

size_t IndexOfMaxAbs(std::span<const double> x) {
  size_t best = 0;
  for (size_t i = 1; i < x.size(); ++i) {
    if (std::abs(x[i]) > std::abs(x[best])) best = i;
  }
  return best;
}

// x := sign(x); says whether that differs from `signs`, which it becomes.
bool TakeSigns(std::span<double> x, std::vector<double>& signs) {
  bool changed = false;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = x[i] >= 0 ? 1.0 : -1.0;
    changed |= x[i] != signs[i];
    signs[i] = x[i];
  }
  return changed;
}

void SetUnitVector(std::span<double> x, size_t index) {
  for (double& v : x) v = 0;
  x[index] = 1;
}

// Higham's last try: a vector on which the iteration's usual way of failing does not work.
absl::StatusOr<double> AlternatingEstimate(std::span<double> x, ApplyOperator apply) {
  const auto n = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = (i % 2 == 0 ? 1.0 : -1.0) * (1.0 + static_cast<double>(i) / (n - 1));
  }
  CROUT_RETURN_IF_ERROR(apply(false, x));
  return 2 * SumAbs(x) / (3 * n);
}

// The iteration proper, from M x = M (1/n, ..., 1/n) in `x`.
absl::StatusOr<double> Iterate(std::span<double> x, ApplyOperator apply) {
  double estimate = SumAbs(x);
  std::vector<double> signs(x.size(), 0.0);
  TakeSigns(x, signs);
  CROUT_RETURN_IF_ERROR(apply(true, x));
  size_t index = IndexOfMaxAbs(x);
  for (int iteration = 2; iteration <= kMaxIterations; ++iteration) {
    SetUnitVector(x, index);
    CROUT_RETURN_IF_ERROR(apply(false, x));
    const double previous = estimate;
    estimate = SumAbs(x);
    if (!TakeSigns(x, signs) || estimate <= previous) return std::max(estimate, previous);
    CROUT_RETURN_IF_ERROR(apply(true, x));
    const size_t last = index;
    index = IndexOfMaxAbs(x);
    if (x[last] == std::abs(x[index])) break;
  }
  return estimate;
}

absl::StatusOr<double> Estimate(std::span<double> x, ApplyOperator apply) {
  CROUT_RETURN_IF_ERROR(apply(false, x));
  if (x.size() == 1) return std::abs(x[0]);
  CROUT_ASSIGN_OR_RETURN(const double iterated, Iterate(x, apply));
  CROUT_ASSIGN_OR_RETURN(const double alternating, AlternatingEstimate(x, apply));
  return std::max(iterated, alternating);
}

}  // namespace

absl::StatusOr<double> EstimateNormOne(int64_t n, ApplyOperator apply) {
  if (n == 0) return 0.0;
  // Comparisons would lose a NaN: the first product that has one ends the estimate.
  bool finite = true;
  const auto checked = [&](bool transpose, std::span<double> x) -> absl::Status {
    CROUT_RETURN_IF_ERROR(apply(transpose, x));
    finite = std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); });
    return finite ? absl::OkStatus() : absl::OutOfRangeError("a product is not finite");
  };
  std::vector<double> x(n, 1.0 / static_cast<double>(n));
  absl::StatusOr<double> estimate = Estimate(std::span<double>(x), checked);
  return finite ? estimate : kInfinity;
}

}  // namespace crout
