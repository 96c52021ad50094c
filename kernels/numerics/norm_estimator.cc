// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/norm_estimator.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "kernels/numerics/factor_probe.h"
#include "kernels/scalar.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr int kMaxIterations = 5;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
double SumAbs(std::span<const T> x) {
  double sum = 0;
  for (const T& v : x) sum += std::abs(v);
  return sum;
}

template <class T>
size_t IndexOfMaxAbs(std::span<const T> x) {
  size_t best = 0;
  for (size_t i = 1; i < x.size(); ++i) {
    if (std::abs(x[i]) > std::abs(x[best])) best = i;
  }
  return best;
}

// Returns x / |x|, and 1 for x = 0.
template <class T>
T SignOf(T x) {
  if constexpr (kIsComplex<T>) {
    const double magnitude = std::abs(x);
    return magnitude > 0 ? x / magnitude : T{1};
  } else {
    return x >= 0 ? 1.0 : -1.0;
  }
}

// x := sign(x). Returns true if the result differs from `signs`, and stores it there.
template <class T>
bool UpdateSigns(std::span<T> x, std::vector<T>& signs) {
  bool changed = false;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = SignOf(x[i]);
    changed |= x[i] != signs[i];
    signs[i] = x[i];
  }
  return changed;
}

template <class T>
void SetUnitVector(std::span<T> x, size_t index) {
  std::fill(x.begin(), x.end(), T{0});
  x[index] = 1;
}

// Returns true if the entry is the largest, so that no other is a better start. A real entry must
// also have the positive sign (LAPACK dlacn2, zlacn2).
template <class T>
bool IsLargest(const T& x, double largest) {
  if constexpr (kIsComplex<T>) {
    return std::abs(x) == largest;
  } else {
    return x == largest;
  }
}

// Higham's final test with alternating signs, a vector for which the usual failure of the iteration
// does not occur. Higham's magnitudes, 1 to 2 in equal steps, are as symmetric about the middle as
// the start of the iteration. If M is large only in directions without that symmetry, as the
// inverse of a grid matrix can be, both would miss it. Therefore the magnitudes are mixed.
template <class T>
absl::StatusOr<double> AlternatingEstimate(std::span<T> x, ApplyOperator<T> apply) {
  for (size_t i = 0; i < x.size(); ++i) {
    const double magnitude = 1.0 + std::abs(ProbeWeight(static_cast<int64_t>(i)));
    x[i] = i % 2 == 0 ? magnitude : -magnitude;
  }
  const double norm = SumAbs<T>(x);
  CROUT_RETURN_IF_ERROR(apply(false, x));
  return SumAbs<T>(x) / norm;
}

// The main iteration. On entry `x` is M (1/n, ..., 1/n).
template <class T>
absl::StatusOr<double> Iterate(std::span<T> x, ApplyOperator<T> apply) {
  double estimate = SumAbs<T>(x);
  std::vector<T> signs(x.size(), T{0});
  UpdateSigns(x, signs);
  CROUT_RETURN_IF_ERROR(apply(true, x));
  size_t index = IndexOfMaxAbs<T>(x);
  for (int iteration = 2; iteration <= kMaxIterations; ++iteration) {
    SetUnitVector(x, index);
    CROUT_RETURN_IF_ERROR(apply(false, x));
    const double previous = estimate;
    estimate = SumAbs<T>(x);
    if (!UpdateSigns(x, signs) || estimate <= previous) return std::max(estimate, previous);
    CROUT_RETURN_IF_ERROR(apply(true, x));
    const size_t last = index;
    index = IndexOfMaxAbs<T>(x);
    if (IsLargest(x[last], std::abs(x[index]))) break;
  }
  return estimate;
}

template <class T>
absl::StatusOr<double> Estimate(std::span<T> x, ApplyOperator<T> apply) {
  CROUT_RETURN_IF_ERROR(apply(false, x));
  if (x.size() == 1) return std::abs(x[0]);
  CROUT_ASSIGN_OR_RETURN(const double iterated, Iterate<T>(x, apply));
  CROUT_ASSIGN_OR_RETURN(const double alternating, AlternatingEstimate<T>(x, apply));
  return std::max(iterated, alternating);
}

}  // namespace

template <class T>
absl::StatusOr<double> EstimateNormOne(int64_t n, ApplyOperator<T> apply) {
  if (n == 0) return 0.0;
  // Comparisons would lose a NaN, so the first product that is not finite ends the estimate.
  bool finite = true;
  const auto checked = [&](bool adjoint, std::span<T> x) -> absl::Status {
    CROUT_RETURN_IF_ERROR(apply(adjoint, x));
    finite = std::all_of(x.begin(), x.end(), [](const T& v) { return IsFinite(v); });
    return finite ? absl::OkStatus() : absl::OutOfRangeError("a product is not finite");
  };
  std::vector<T> x(n, T{1.0 / static_cast<double>(n)});
  absl::StatusOr<double> estimate = Estimate<T>(std::span<T>(x), checked);
  return finite ? estimate : kInfinity;
}

template absl::StatusOr<double> EstimateNormOne<double>(int64_t n, ApplyOperator<double> apply);
template absl::StatusOr<double> EstimateNormOne<std::complex<double>>(
    int64_t n, ApplyOperator<std::complex<double>> apply);

absl::Status HostVectorSolver::Solve(Op op, void* x, DType dtype, int64_t n) {
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
  MatrixOps& ops = context_.ops();
  const AnyMatrix v{device_vector_, dtype, n, 1, std::max<int64_t>(1, n)};
  const size_t bytes = n * SizeOf(dtype);
  CROUT_RETURN_IF_ERROR(ops.CopyToDevice(x, device_vector_, bytes));
  CROUT_RETURN_IF_ERROR(inverse_.Apply(op, v, v));
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(device_vector_, x, bytes));
  return context_.Synchronize();
}

}  // namespace crout
