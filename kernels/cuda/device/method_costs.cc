// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/method_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/cuda/crout_lu/lu_blocking.h"

namespace crout::cuda {
namespace {

// Fitted to one H100 80GB HBM3, CUDA 13.0, float64, n = 256 to 16384. float32 takes nearly as long,
// because panel latency dominates.
constexpr double kCall = 1e-5;
constexpr double kFlopsPerSecond = 48e12;
constexpr double kTf32FlopsPerSecond = 110e12;  // H200; per product of three TF32 ones
constexpr double kCroutColumn = 2.9e-6;
constexpr double kCroutElement = 0.2e-9;  // interchanges, and solves with tiles
constexpr double kPanelColumn = 0.72e-6;  // with clusters
constexpr double kPanelElement = 0.08e-9;
constexpr double kBlockColumn = 0.9e-6;
constexpr double kBlockColumnOfComplex128 = 3.8e-6;  // on an H200
constexpr double kBlockElement = 0.06e-9;

// Cost model of solves with n unknowns and nrhs right-hand sides. The latency of products with
// diagonal blocks grows as a power of the number of columns until they fill the device. Reading the
// factor is limited by memory bandwidth.
constexpr double kSolveCall = 3e-5;
constexpr double kSolveUnknown = 13e-9;
constexpr double kSolvePower = 0.4;
constexpr double kSolveFill = 64;
constexpr double kSolveElement = 3e-12;
constexpr double kSolveColumn = 1.6e-14;  // per element of the factor

double LuFlops(double n) { return 2.0 / 3.0 * n * n * n; }

// Ratio of the cost of a complex type to that of its real one: a complex product is four real
// products, and a complex number is two real numbers. float32 without TF32 products and complex64
// are charged like the wider type.
double Arithmetic(DType dtype) { return IsComplex(dtype) ? 4 : 1; }
double Traffic(DType dtype) { return IsComplex(dtype) ? 2 : 1; }

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

double PredictPcmSeconds(DType dtype, int64_t order) {
  const auto n = static_cast<double>(order);
  return kCall + kCroutColumn * n + Traffic(dtype) * kCroutElement * n * n +
         Arithmetic(dtype) * LuFlops(n) / kFlopsPerSecond;
}

double PredictCroutLuSeconds(DType dtype, int64_t order, bool clusters) {
  const auto n = static_cast<double>(order);
  const double column = clusters ? kPanelColumn : kCroutColumn;
  const double rate = LuBlocking::For(dtype, order).tf32 ? kTf32FlopsPerSecond : kFlopsPerSecond;
  return kCall + column * n + Traffic(dtype) * kPanelElement * n * n +
         Arithmetic(dtype) * LuFlops(n) / rate;
}

double PredictBlockLuSeconds(DType dtype, int64_t order) {
  const auto n = static_cast<double>(order);
  const double column = dtype == DType::kComplex128 ? kBlockColumnOfComplex128 : kBlockColumn;
  return kCall + column * n + Traffic(dtype) * kBlockElement * n * n +
         Arithmetic(dtype) * LuFlops(n) / kFlopsPerSecond;
}

double PredictGaussJordanSeconds(DType dtype, int64_t order, int64_t nrhs) {
  const auto n = static_cast<double>(order);
  const auto columns = static_cast<double>(nrhs);
  return kCall + kCroutColumn * n + Traffic(dtype) * kCroutElement * n * (n + columns) +
         Arithmetic(dtype) * n * n * (n + 2 * columns) / kFlopsPerSecond;
}

double PredictCroutSolveSeconds(DType dtype, int64_t order, int64_t nrhs) {
  const auto n = static_cast<double>(order);
  const auto columns = static_cast<double>(nrhs);
  const double latency =
      std::pow(std::min(columns, kSolveFill), kSolvePower) * std::max(1.0, columns / kSolveFill);
  return kSolveCall + kSolveUnknown * n * latency +
         (Traffic(dtype) * kSolveElement + Arithmetic(dtype) * kSolveColumn * columns) * n * n;
}

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
