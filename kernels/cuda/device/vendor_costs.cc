// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/vendor_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace crout::cuda {
namespace {

constexpr size_t kSizes = 9;
constexpr std::array<double, kSizes> kN = {256, 512, 1024, 2599, 4156, 8385, 11532, 16384, 32768};

// Milliseconds on one H100 80GB HBM3, CUDA 13.0, float64.
constexpr std::array<double, kSizes> kGetrf = {0.45, 1.05, 2.41, 8.50, 15.2, 45.5, 73.6, 142, 722};

// One row per number of right-hand sides. For few right-hand sides, more columns can cost less.
struct SolveRow {
  double nrhs;
  std::array<double, kSizes> milliseconds;
};
using SolveTable = std::array<SolveRow, 3>;
constexpr SolveTable kGetrs = {{
    {1, {0.103, 0.178, 0.328, 0.879, 1.36, 2.74, 3.72, 5.26, 11.4}},
    {10, {0.267, 0.525, 1.06, 3.71, 8.04, 17.3, 23.7, 33.8, 68.5}},
    {64, {0.196, 0.388, 0.796, 2.17, 3.43, 7.29, 9.91, 14.2, 30.1}},
}};
constexpr SolveTable kTrsm = {{
    {1, {0.064, 0.098, 0.162, 0.383, 0.579, 1.18, 1.58, 2.22, 5.49}},
    {10, {0.230, 0.437, 0.881, 3.17, 7.15, 15.7, 21.3, 30.4, 61.7}},
    {64, {0.162, 0.316, 0.648, 1.53, 2.43, 5.21, 7.12, 10.1, 22.2}},
}};
constexpr double kLaunchMilliseconds = 0.01;

// Additional cost of complex types over real ones: three more products per product, and as many
// bytes again.
constexpr double kSecondsOfProducts = 3 * 2 / 50e12;
constexpr double kSecondsOfElement = sizeof(double) / 3e12;

// Interpolates by a power law between neighbors. Below the table, the cost falls in proportion to
// n, but not below the cost of a launch. Above it, the cost grows with the power `growth` of n.
double AtSize(const std::array<double, kSizes>& milliseconds, double n, double growth) {
  if (n <= kN.front()) {
    return std::max(kLaunchMilliseconds, milliseconds.front() * n / kN.front());
  }
  if (n >= kN.back()) return milliseconds.back() * std::pow(n / kN.back(), growth);
  const size_t above = std::upper_bound(kN.begin(), kN.end(), n) - kN.begin();
  const double share = std::log(n / kN[above - 1]) / std::log(kN[above] / kN[above - 1]);
  return milliseconds[above - 1] * std::pow(milliseconds[above] / milliseconds[above - 1], share);
}

double PredictRealSolve(const SolveTable& table, int64_t n, int64_t nrhs) {
  const auto columns = static_cast<double>(nrhs);
  double nrhs_below = 0;
  double below = kLaunchMilliseconds;
  for (const SolveRow& row : table) {
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

double PredictSolve(const SolveTable& table, DType dtype, int64_t n, int64_t nrhs) {
  const double real = PredictRealSolve(table, n, nrhs);
  if (!IsComplex(dtype)) return real;
  const double elements = static_cast<double>(n) * static_cast<double>(n);
  return real + elements * (kSecondsOfElement + kSecondsOfProducts * static_cast<double>(nrhs));
}

}  // namespace

double PredictGetrfSeconds(DType dtype, int64_t order) {
  const auto n = static_cast<double>(order);
  const double real = 1e-3 * AtSize(kGetrf, n, 3);
  return IsComplex(dtype) ? real + kSecondsOfProducts * n * n * n / 3 : real;
}

double PredictGetrsSeconds(DType dtype, int64_t n, int64_t nrhs) {
  return PredictSolve(kGetrs, dtype, n, nrhs);
}

double PredictTrsmSeconds(DType dtype, int64_t n, int64_t nrhs) {
  return PredictSolve(kTrsm, dtype, n, nrhs);
}

}  // namespace crout::cuda
