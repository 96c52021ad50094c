// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/matrix_functions.h"

#include <cmath>
#include <utility>

#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/lanes.h"
#include "kernels/host/ops/vector_clones.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

// x^T y in float64 or complex128. Compiled without contraction, so that all clones round alike.
template <class T, class Y>
CROUT_VECTOR_CLONES WideType<T> Dot(const T* x, const Y* y, int64_t count) {
  return DotInLanes(x, y, count);
}

void Permute(const int64_t* ipiv, int64_t n, double* z) {
  for (int64_t i = 0; i < n; ++i) {
    if (ipiv[i] >= 1 && ipiv[i] <= n) std::swap(z[i], z[ipiv[i] - 1]);
  }
}

// Largest difference between z^T A and (P z)^T L U, given (P z)^T L; NaN if any element is NaN.
template <class T>
double LargestDifference(int cores, const MatrixView<T>& lu, bool unit_in_u,
                         const FactorProbe& probe) {
  using Wide = WideType<T>;
  const Wide* const lower = probe.lower_products<Wide>();
  Wide* const difference = probe.matrix_products<Wide>();
  ParallelFor(cores, lu.cols, [&](int64_t j) {
    const Wide diagonal = unit_in_u ? Wide{1} : ToFloat64(lu(j, j));
    difference[j] -= Dot(&lu(0, j), lower, j) + diagonal * lower[j];
  });
  double largest = 0;
  for (int64_t j = 0; j < lu.cols; ++j) {
    const double magnitude = Modulus(difference[j]);
    if (!(magnitude <= largest)) largest = magnitude;
    if (std::isnan(largest)) break;
  }
  return largest;
}

}  // namespace

void StartFactorProbe(int cores, const AnyMatrix& a, const FactorProbe& probe) {
  DispatchDType(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    double* const z = probe.permuted<WideType<T>>();
    for (int64_t i = 0; i < probe.n; ++i) z[i] = ProbeWeight(i) * probe.scale;
    auto* const products = probe.matrix_products<WideType<T>>();
    const auto view = a.As<T>();
    ParallelFor(cores, a.cols, [&](int64_t j) { products[j] = Dot(&view(0, j), z, a.rows); });
  });
}

double FinishFactorProbe(int cores, const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                         const FactorProbe& probe) {
  return DispatchDType(lu.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Wide = WideType<T>;
    double* const z = probe.permuted<Wide>();
    if (ipiv != nullptr) Permute(ipiv, probe.n, z);
    const auto view = lu.As<T>();
    Wide* const lower = probe.lower_products<Wide>();
    ParallelFor(cores, lu.cols, [&](int64_t k) {
      const Wide diagonal = unit_in_u ? ToFloat64(view(k, k)) : Wide{1};
      const int64_t below = lu.rows - k - 1;
      lower[k] = diagonal * z[k] + (below > 0 ? Dot(&view(k, k) + 1, z + k + 1, below) : Wide{0});
    });
    return LargestDifference(cores, view, unit_in_u, probe);
  });
}

}  // namespace crout::host
