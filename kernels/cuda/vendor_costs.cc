#include "kernels/cuda/vendor_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace crout {
namespace {

constexpr size_t kSizes = 9;
constexpr std::array<double, kSizes> kN = {256, 512, 1024, 2599, 4156, 8385, 11532, 16384, 32768};

// Milliseconds, one H100 80GB HBM3, CUDA 13.0, float64.
constexpr std::array<double, kSizes> kGetrf = {0.45, 1.05, 2.41, 8.50, 15.2, 45.5, 73.6, 142, 722};
struct GetrsRow {
  double nrhs;
  std::array<double, kSizes> milliseconds;
};
constexpr std::array<GetrsRow, 3> kGetrs = {{
    {1, {0.10, 0.24, 0.33, 0.86, 1.36, 2.75, 3.74, 5.32, 11.5}},
    {10, {0.27, 0.57, 1.04, 3.70, 7.97, 17.3, 23.6, 33.5, 67.9}},
    {64, {0.24, 1.09, 0.95, 2.56, 4.05, 8.55, 11.6, 16.7, 34.9}},
}};
constexpr double kLaunchMilliseconds = 0.01;

// A power law between neighbours. Below the table the cost falls with n, down to a launch; above it
// grows by `growth`, the arithmetic's power of n.
double AtSize(const std::array<double, kSizes>& milliseconds, double n, double growth) {
  if (n <= kN.front()) {
    return std::max(kLaunchMilliseconds, milliseconds.front() * n / kN.front());
  }
  if (n >= kN.back()) return milliseconds.back() * std::pow(n / kN.back(), growth);
  const size_t above = std::upper_bound(kN.begin(), kN.end(), n) - kN.begin();
  const double share = std::log(n / kN[above - 1]) / std::log(kN[above] / kN[above - 1]);
  return milliseconds[above - 1] * std::pow(milliseconds[above] / milliseconds[above - 1], share);
}

}  // namespace

double PredictGetrfSeconds(int64_t n) { return 1e-3 * AtSize(kGetrf, static_cast<double>(n), 3); }

double PredictGetrsSeconds(int64_t n, int64_t nrhs) {
  const auto columns = static_cast<double>(nrhs);
  double nrhs_below = 0;
  double below = kLaunchMilliseconds;
  for (const GetrsRow& row : kGetrs) {
    const double here = AtSize(row.milliseconds, static_cast<double>(n), 2);
    if (columns <= row.nrhs) {
      const double share = (columns - nrhs_below) / (row.nrhs - nrhs_below);
      return 1e-3 * (below + share * (here - below));
    }
    nrhs_below = row.nrhs;
    below = here;
  }
  return 1e-3 * below * columns / nrhs_below;
}

}  // namespace crout
