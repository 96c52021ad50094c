// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/device/own_costs.h"

#include <algorithm>
#include <cmath>

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

}  // namespace crout::cuda
