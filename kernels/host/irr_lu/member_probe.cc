// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/irr_lu/member_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/host/ops/lanes.h"
#include "kernels/host/ops/vector_clones.h"
#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/numerics/pivot_growth.h"

namespace crout::host {
namespace {

struct Norms {
  double max_abs = 0;  // ignores NaN
  double one = 0;
};

template <class T>
CROUT_VECTOR_CLONES Norms ComputeNorms(const MatrixView<T>& a) {
  Norms norms;
  for (int64_t j = 0; j < a.cols; ++j) {
    const Moduli column = ComputeModuli(&a(0, j), a.rows);
    norms.max_abs = std::max(norms.max_abs, column.max);
    norms.one = std::max(norms.one, column.sum);
  }
  return norms;
}

// products := z^T A, weights := z.
template <class T>
CROUT_VECTOR_CLONES void Multiply(const MatrixView<T>& a, double scale, double* weights,
                                  WideType<T>* products) {
  for (int64_t i = 0; i < a.rows; ++i) weights[i] = ProbeWeight(i) * scale;
  for (int64_t j = 0; j < a.cols; ++j) products[j] = DotInLanes(&a(0, j), weights, a.rows);
}

struct Difference {
  double probe = 0;  // |z^T (A - P^T L U)|_inf; NaN if any element is
  double max_abs_u = 0;
};

// Compares L U with A, given P z in `weights` and z^T A in `products`.
template <class T>
CROUT_VECTOR_CLONES Difference Compare(const MatrixView<T>& lu, const double* weights,
                                       const WideType<T>* products, WideType<T>* lower) {
  const int64_t diagonal = std::min(lu.rows, lu.cols);
  for (int64_t k = 0; k < diagonal; ++k) {
    lower[k] = weights[k] + DotInLanes(&lu(0, k) + k + 1, weights + k + 1, lu.rows - k - 1);
  }
  Difference difference;
  for (int64_t j = 0; j < lu.cols; ++j) {
    const T* const x = &lu(0, j);
    const int64_t count = std::min(j + 1, diagonal);
    const double magnitude = Modulus(products[j] - DotInLanes(x, lower, count));
    if (!(magnitude <= difference.probe)) difference.probe = magnitude;
    if (std::isnan(magnitude)) return difference;
    difference.max_abs_u = std::max(difference.max_abs_u, MaxAbs(x, count));
  }
  return difference;
}

template <class T>
double ConditionOf(const MatrixView<T>& lu, double max_abs) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (int64_t k = 0; k < std::min(lu.rows, lu.cols); ++k) {
    const double pivot = Modulus(ToFloat64(lu(k, k)));
    least = std::min(least, pivot);
    most = std::max(most, pivot);
  }
  return PivotCondition(least, most, max_abs);
}

}  // namespace

template <class T>
void MemberProbe<T>::Start(const MatrixView<T>& a) {
  const Norms norms = ComputeNorms(a);
  max_abs_ = norms.max_abs;
  norm_one_ = norms.one;
  Multiply(a, ProbeScale(max_abs_), weights_, products_);
}

template <class T>
typename MemberProbe<T>::Figures MemberProbe<T>::Finish(const MatrixView<T>& lu,
                                                        const int64_t* ipiv) {
  const int64_t diagonal = std::min(lu.rows, lu.cols);
  for (int64_t k = 0; k < diagonal; ++k) std::swap(weights_[k], weights_[ipiv[k] - 1]);
  const Difference difference = Compare(lu, weights_, products_, lower_);
  // Any NaN or Inf in L or U makes the probe NaN or Inf.
  const double largest = std::isfinite(difference.probe)
                             ? DivisibleOrInfinity(difference.max_abs_u, kDTypeOf<T>)
                             : std::numeric_limits<double>::infinity();
  if (std::isinf(largest)) return {largest, largest, largest};
  const FactorProbe probe{std::max(lu.rows, lu.cols), ProbeScale(max_abs_), nullptr};
  return {PivotGrowth(largest, max_abs_),
          FactorQuality(difference.probe, probe, norm_one_, kDTypeOf<T>),
          ConditionOf(lu, max_abs_)};
}

template class MemberProbe<float>;
template class MemberProbe<double>;
template class MemberProbe<std::complex<float>>;
template class MemberProbe<std::complex<double>>;

}  // namespace crout::host
