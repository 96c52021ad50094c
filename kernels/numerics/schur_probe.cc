// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/schur_probe.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "kernels/numerics/factor_probe.h"
#include "kernels/scalar.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

enum Vectors { kV, kMinusAv, kMinusSz, kZeros };

double LargestKeepingNan(double largest, double x) {
  return std::isnan(x) || std::abs(x) > largest ? std::abs(x) : largest;
}

}  // namespace

SchurProbe::SchurProbe(ExecutionContext& context, const MatrixStats& a, DType dtype, int64_t n,
                       int64_t k, std::byte* work)
    : context_(context),
      norm_inf_(a.norm_inf),
      dtype_(dtype),
      parts_(IsComplex(dtype) ? 2 : 1),
      n_(n),
      k_(k),
      work_(work),
      host_(kSchurProbeVectors * n * parts_, 0.0) {
  const double scale = ProbeScale(a.max_abs);
  for (int64_t i = k; i < n; ++i) *HostParts(kV, i) = ProbeWeight(i) * scale;
}

double SchurProbe::HostMagnitude(int which, int64_t i) {
  const double* const parts = HostParts(which, i);
  return parts_ == 1 ? std::abs(parts[0]) : Modulus(std::complex<double>(parts[0], parts[1]));
}

absl::Status SchurProbe::Multiply(const AnyMatrix& m, const AnyMatrix& x, const AnyMatrix& out) {
  return context_.ops().Residual(m, Op::kNone, 0, x, Vector(kZeros, 0, out.rows), out);
}

absl::Status SchurProbe::Start(const AnyMatrix& a, const AnyMatrix& x) {
  const size_t bytes = host_.size() * sizeof(double);
  CROUT_RETURN_IF_ERROR(context_.ops().CopyToDevice(host_.data(), work_, bytes));
  CROUT_RETURN_IF_ERROR(Multiply(x, Vector(kV, k_, n_ - k_), Vector(kV, 0, k_)));
  return Multiply(a, Vector(kV, 0, n_), Vector(kMinusAv, 0, n_));
}

absl::Status SchurProbe::Finish(const AnyMatrix& s) {
  return Multiply(s, Vector(kV, k_, n_ - k_), Vector(kMinusSz, k_, n_ - k_));
}

absl::StatusOr<double> SchurProbe::BackwardError() {
  const size_t bytes = kZeros * n_ * SizeOf(dtype_);
  CROUT_RETURN_IF_ERROR(context_.ops().CopyToHost(work_, host_.data(), bytes));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  double error = 0;
  double largest_v = 0;
  double largest_s = 0;
  for (int64_t i = 0; i < n_; ++i) {
    largest_v = LargestKeepingNan(largest_v, HostMagnitude(kV, i));
    largest_s = LargestKeepingNan(largest_s, HostMagnitude(kMinusSz, i));  // 0 above S
    for (int64_t part = 0; part < parts_; ++part) {
      HostParts(kMinusAv, i)[part] -= HostParts(kMinusSz, i)[part];
    }
    error = LargestKeepingNan(error, HostMagnitude(kMinusAv, i));
  }
  if (!std::isfinite(error + largest_v + largest_s)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (error == 0) return 0;
  // A's norm may overflow float64; then the largest float64 is used, in a product of wider range.
  const long double norm = std::min(norm_inf_, std::numeric_limits<double>::max());
  return static_cast<double>(error / (norm * largest_v + largest_s));
}

}  // namespace crout
