// SPDX-License-Identifier: Apache-2.0

// Cost model of the host, in seconds, for admission and for `auto`. Estimates are within a factor
// of about three on x86-64 servers and rank the alternatives correctly. The exception is matrices
// of a few rows, which are measured instead (calibration.h).
#ifndef CROUT_KERNELS_HOST_DEVICE_COST_MODEL_H_
#define CROUT_KERNELS_HOST_DEVICE_COST_MODEL_H_

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/host/device/executor.h"

namespace crout::host {

inline constexpr double kCallSeconds = 2e-6;
inline constexpr double kVendorFlopsPerCore = 2.5e10;    // float64, OpenBLAS level 3
inline constexpr double kReferenceFlopsPerCore = 2e9;    // float64, our own loops
inline constexpr double kMemoryElementsPerSecond = 1e9;  // float64, one core

// Speed of a type relative to float64: float32 is twice as fast; a complex operation costs four
// real ones.
constexpr double RateFactor(DType dtype) {
  const double real = RealOf(dtype) == DType::kFloat32 ? 2 : 1;
  return IsComplex(dtype) ? real / 4 : real;
}

constexpr double LuFlops(int64_t n) {
  return 2.0 / 3.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
}

// Blocked LU with blocks of `block` columns: one core runs our loops within a block, BLAS products
// update the rest. Always exceeds the estimate for getrf.
constexpr double BlockedLuSeconds(DType dtype, int64_t n, Width width, int cores, int64_t block) {
  const double rate = RateFactor(dtype);
  const int used = width == Width::kAllCores ? cores : 1;
  const double panels = static_cast<double>(n) * static_cast<double>(n) * block;
  return 2 * kCallSeconds + LuFlops(n) / (kVendorFlopsPerCore * rate * used) +
         panels / (kReferenceFlopsPerCore * rate);
}

constexpr double SolveFlops(int64_t n, int64_t nrhs) {
  return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(nrhs);
}

// Time to read the factor once.
constexpr double FactorReadSeconds(DType dtype, int64_t n) {
  return static_cast<double>(n) * static_cast<double>(n) /
         (kMemoryElementsPerSecond * sizeof(double) / static_cast<double>(SizeOf(dtype)));
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_COST_MODEL_H_
