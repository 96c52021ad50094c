#include "kernels/cuda/own_costs.h"

namespace crout {
namespace {

constexpr double kFlopsPerSecond = 30e12;

// Latency that every column pays, and the products.
double Seconds(double column_seconds, double n, double flops) {
  return 1e-5 + column_seconds * n + flops / kFlopsPerSecond;
}

double LuFlops(double n) { return 2.0 / 3.0 * n * n * n; }

}  // namespace

double PredictPcmSeconds(DType, int64_t n) {
  const auto order = static_cast<double>(n);
  return Seconds(3.5e-6, order, LuFlops(order));
}

double PredictBlockLuSeconds(DType, int64_t n) {
  const auto order = static_cast<double>(n);
  return Seconds(0.8e-6, order, LuFlops(order));
}

double PredictGaussJordanSeconds(DType, int64_t n, int64_t nrhs) {
  const auto order = static_cast<double>(n);
  return Seconds(3.5e-6, order, order * order * (order + 2.0 * static_cast<double>(nrhs)));
}

}  // namespace crout
