// SPDX-License-Identifier: Apache-2.0

// A probe of |PA - LU|: estimates the quality of a factorization with a few passes over the matrix.
//
// For a fixed random vector z with 1/2 <= |z_i| < 1, the probe is |z^T (A - P^T L U)|_inf. It
// computes z^T A before the factors overwrite A, and afterwards reads as much as two triangular
// products.
//
// For E = PA - LU, the probe is below |E|_1, and about |E|_1 / sqrt(n) if the errors of a column
// are spread over its rows, as rounding errors are. Multiplied by sqrt(n) and divided by n |A|_1
// eps, it estimates the factor ratio |PA - LU|_1 / (n |A|_1 eps) by which LAPACK's tests accept a
// factorization.
//
// Without its own rounding, the estimate never exceeds sqrt(n) times the ratio. This rounding is
// about eps |L| |U| and matters if entries grow. For one in ten choices of the signs of z, the
// estimate is below a tenth of the ratio. Products from the left suit column-major matrices: each
// sum stays in its column.
#ifndef CROUT_KERNELS_NUMERICS_FACTOR_PROBE_H_
#define CROUT_KERNELS_NUMERICS_FACTOR_PROBE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/dtype.h"
#include "kernels/numerics/normalizing_scale.h"

namespace crout {

// Returns z_i, the same in every probe. A multiple of 2^-21, so that products with float32 are
// exact in float64. constexpr, so that device code may call it.
constexpr double ProbeWeight(int64_t i) {
  auto bits = static_cast<uint32_t>(i) * 0x9e3779b9U;
  for (const uint32_t factor : {0x85ebca6bU, 0xc2b2ae35U}) bits = (bits ^ (bits >> 15)) * factor;
  const double magnitude = 0.5 + (bits >> 12) * 0x1p-21;
  return (bits & 0x800U) != 0 ? -magnitude : magnitude;
}

// Returns the power of two that scales z for a matrix with this largest entry. It brings A z near
// 1, with room on both sides for products.
CROUT_HOST_DEVICE inline double ProbeScale(double max_abs) {
  return std::clamp(NormalizingScale(max_abs), 0x1p-500, 0x1p500);
}

// State between MatrixOps::StartProbe and MatrixOps::InspectFactor. If `work` is null, there is no
// probe.
struct FactorProbe {
  int64_t n = 0;
  double scale = 1;        // scale of z: ProbeScale
  double* work = nullptr;  // device memory, FactorProbeVectors * n elements

  // T is double, or std::complex<double> if A is complex. constexpr, so that device code may call
  // these functions.
  template <class T = double>
  constexpr T* matrix_products() const {  // z^T A
    return reinterpret_cast<T*>(work);
  }
  template <class T = double>
  constexpr T* lower_products() const {  // (P z)^T L
    return matrix_products<T>() + n;
  }
  template <class T = double>
  constexpr double* permuted() const {  // P z, in a device-specific format
    return reinterpret_cast<double*>(lower_products<T>() + n);
  }
};

constexpr size_t kFactorProbeVectors = 3;  // vectors of n float64 for a real A
constexpr size_t FactorProbeVectors(DType dtype) {
  return IsComplex(dtype) ? 5 : kFactorProbeVectors;
}

// Returns the estimate from the probe of a matrix with this 1-norm, which may have overflowed. +Inf
// if the probe is not finite; 0 if it is 0.
CROUT_HOST_DEVICE inline double FactorQuality(double probe, const FactorProbe& with,
                                              double norm_one, DType factor_dtype) {
  if (!std::isfinite(probe)) return std::numeric_limits<double>::infinity();
  if (probe == 0) return 0;
  const double norm = std::min(norm_one, std::numeric_limits<double>::max()) * with.scale;
  return probe / (std::sqrt(static_cast<double>(with.n)) * norm * UnitRoundoff(factor_dtype));
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_FACTOR_PROBE_H_
