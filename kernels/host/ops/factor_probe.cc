#include "kernels/host/ops/factor_probe.h"

#include <cmath>
#include <utility>

#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/lanes.h"
#include "kernels/host/ops/vector_clones.h"

namespace crout::host {
namespace {

// x^T y in float64. Compiled without contraction: the clones add and round alike.
template <class T>
CROUT_VECTOR_CLONES double Dot(const T* x, const double* y, int64_t count) {
  double lanes[kLanes] = {};
  const int64_t whole = count - count % kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (int k = 0; k < kLanes; ++k) lanes[k] += static_cast<double>(x[i + k]) * y[i + k];
  }
  for (int64_t i = whole; i < count; ++i) lanes[i - whole] += static_cast<double>(x[i]) * y[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

void Permute(const int64_t* ipiv, int64_t n, double* z) {
  for (int64_t i = 0; i < n; ++i) {
    if (ipiv[i] >= 1 && ipiv[i] <= n) std::swap(z[i], z[ipiv[i] - 1]);
  }
}

// Largest difference between z^T A and (P z)^T L U, given (P z)^T L; NaN if there is one.
template <class T>
double LargestDifference(int cores, const MatrixView<T>& lu, bool unit_in_u,
                         const FactorProbe& probe) {
  const double* const lower = probe.lower_products();
  double* const difference = probe.matrix_products();
  ParallelFor(cores, lu.cols, [&](int64_t j) {
    const double diagonal = unit_in_u ? 1 : static_cast<double>(lu(j, j));
    difference[j] -= Dot(&lu(0, j), lower, j) + diagonal * lower[j];
  });
  double largest = 0;
  for (int64_t j = 0; j < lu.cols; ++j) {
    if (!(std::abs(difference[j]) <= largest)) largest = std::abs(difference[j]);
    if (std::isnan(largest)) break;
  }
  return largest;
}

}  // namespace

void StartFactorProbe(int cores, const AnyMatrix& a, const FactorProbe& probe) {
  double* const z = probe.permuted();
  for (int64_t i = 0; i < probe.n; ++i) z[i] = ProbeWeight(i) * probe.scale;
  DispatchReal(a.dtype, [&](auto tag) {
    const auto view = a.As<typename decltype(tag)::type>();
    ParallelFor(cores, a.cols,
                [&](int64_t j) { probe.matrix_products()[j] = Dot(&view(0, j), z, a.rows); });
  });
}

double FinishFactorProbe(int cores, const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                         const FactorProbe& probe) {
  double* const z = probe.permuted();
  if (ipiv != nullptr) Permute(ipiv, probe.n, z);
  return DispatchReal(lu.dtype, [&](auto tag) {
    const auto view = lu.As<typename decltype(tag)::type>();
    ParallelFor(cores, lu.cols, [&](int64_t k) {
      const double diagonal = unit_in_u ? static_cast<double>(view(k, k)) : 1;
      const int64_t below = lu.rows - k - 1;
      probe.lower_products()[k] =
          diagonal * z[k] + (below > 0 ? Dot(&view(k, k) + 1, z + k + 1, below) : 0);
    });
    return LargestDifference(cores, view, unit_in_u, probe);
  });
}

}  // namespace crout::host
