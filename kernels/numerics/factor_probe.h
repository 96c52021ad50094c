// A probe of |PA - LU|: what a factorization is worth, for a few passes over the matrix.
//
// With a fixed random vector z, 1/2 <= |z_i| < 1, the probe is |z^T (A - P^T L U)|_inf. It takes
// z^T A before the factors overwrite A, and two triangular products' worth of reading after. For
// E = PA - LU it is below |E|_1, and about |E|_1 / sqrt(n) where the errors of a column are spread
// over its rows, as rounding errors are. Multiplied by sqrt(n) and divided by n |A|_1 eps it is
// therefore an estimate of the factor ratio |PA - LU|_1 / (n |A|_1 eps) by which LAPACK's tests
// accept a factorization: but for its own rounding, which is about eps |L| |U| and counts where
// entries grow, never above sqrt(n) times the ratio, and below a tenth of it for one choice of the
// signs of z in ten. Products from the left suit matrices stored by columns: no sum
// leaves its column.
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

// z_i, the same in every probe. constexpr, so that device code may call it too; a multiple of
// 2^-21, so that its products with float32 are exact in float64.
constexpr double ProbeWeight(int64_t i) {
  auto bits = static_cast<uint32_t>(i) * 0x9e3779b9U;
  for (const uint32_t factor : {0x85ebca6bU, 0xc2b2ae35U}) bits = (bits ^ (bits >> 15)) * factor;
  const double magnitude = 0.5 + (bits >> 12) * 0x1p-21;
  return (bits & 0x800U) != 0 ? -magnitude : magnitude;
}

// The power of two that z is multiplied by, for a matrix with this largest entry: A z is near 1,
// and there is room for products on both sides of it.
CROUT_HOST_DEVICE inline double ProbeScale(double max_abs) {
  return std::clamp(NormalizingScale(max_abs), 0x1p-500, 0x1p500);
}

// Between MatrixOps::StartProbe and MatrixOps::InspectFactor. Without `work` there is no probe.
struct FactorProbe {
  int64_t n = 0;
  double scale = 1;        // of z: ProbeScale
  double* work = nullptr;  // device memory, FactorProbeVectors * n

  // T: double, or std::complex<double> where A is complex. constexpr, so that device code may call
  // them too.
  template <class T = double>
  constexpr T* matrix_products() const {  // z^T A
    return reinterpret_cast<T*>(work);
  }
  template <class T = double>
  constexpr T* lower_products() const {  // (P z)^T L
    return matrix_products<T>() + n;
  }
  template <class T = double>
  constexpr double* permuted() const {  // in what form a device keeps P z
    return reinterpret_cast<double*>(lower_products<T>() + n);
  }
};

constexpr size_t kFactorProbeVectors = 3;  // of n float64, where A is real
constexpr size_t FactorProbeVectors(DType dtype) {
  return IsComplex(dtype) ? 5 : kFactorProbeVectors;
}

// The estimate from the probe of a matrix of this 1-norm, which may have overflowed. +Inf for a
// probe that is not finite; 0 for one that is 0.
CROUT_HOST_DEVICE inline double FactorQuality(double probe, const FactorProbe& with,
                                              double norm_one, DType factor_dtype) {
  if (!std::isfinite(probe)) return std::numeric_limits<double>::infinity();
  if (probe == 0) return 0;
  const double norm = std::min(norm_one, std::numeric_limits<double>::max()) * with.scale;
  return probe / (std::sqrt(static_cast<double>(with.n)) * norm * UnitRoundoff(factor_dtype));
}

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_FACTOR_PROBE_H_
