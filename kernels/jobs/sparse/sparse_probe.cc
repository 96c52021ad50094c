// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/sparse/sparse_retries.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/numerics/accuracy_warnings.h"
#include "kernels/numerics/factor_probe.h"
#include "kernels/numerics/residual_check.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// |x + z| / |z| in the maximum norm: the relative error of x = -z. NaN if x holds a NaN.
double RelativeErrorOfNegative(std::span<const double> x, std::span<const double> z) {
  double distance = 0;
  double largest = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    const double difference = std::abs(x[i] + z[i]);
    if (!(difference <= distance)) distance = difference;
    if (std::isnan(difference)) break;
    largest = std::max(largest, std::abs(z[i]));
  }
  return distance / largest;
}

}  // namespace

absl::StatusOr<SparseProbe> ProbeSparseFactor(ExecutionContext& context, const Operand& a,
                                              FactorSolver& solver, double max_abs,
                                              std::span<std::byte> work,
                                              const FactorSummary& factor) {
  const int64_t n = factor.n;
  const DType wide = WideOf(factor.factor_dtype);
  const size_t bytes = n * SizeOf(wide);
  const auto vector = [&](int i) { return AnyMatrix{work.data() + i * bytes, wide, n, 1, n}; };
  std::vector<std::byte> host(kSparseProbeVectors * bytes);
  const double scale = ProbeScale(max_abs);
  const size_t stride = SizeOf(wide) / sizeof(double);
  auto* const z = reinterpret_cast<double*>(host.data());
  for (int64_t i = 0; i < n; ++i) z[i * stride] = ProbeWeight(i) * scale;
  CROUT_RETURN_IF_ERROR(context.ops().CopyToDevice(host.data(), work.data(), host.size()));
  // The residual of z for b = 0 is -A z. The solve for it gives -z.
  ResidualCheck product(context, {&a, Op::kNone, vector(0), vector(1), vector(2), std::nullopt});
  CROUT_RETURN_IF_ERROR(product.Measure());
  CROUT_RETURN_IF_ERROR(solver.Apply(Op::kNone, vector(2), vector(0)));
  ResidualCheck check(context, {&a, Op::kNone, vector(0), vector(2), vector(1), std::nullopt});
  CROUT_RETURN_IF_ERROR(check.Measure());
  std::byte* const x = host.data() + bytes;
  CROUT_RETURN_IF_ERROR(context.ops().CopyToHost(work.data(), x, bytes));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  // |b| is at most |A| |x|, up to rounding errors. sqrt(n) as in factor_probe.h: the errors of a
  // row are spread over its columns.
  const double error = 2 * check.errors().normwise;
  const double u = UnitRoundoff(factor.factor_dtype);
  SparseProbe probe;
  probe.quality = std::isnan(error) ? std::numeric_limits<double>::infinity()
                                    : error / (std::sqrt(static_cast<double>(n)) * u);
  const double distance =
      RelativeErrorOfNegative({reinterpret_cast<const double*>(x), n * stride}, {z, n * stride});
  // One right-hand side shows a fraction of the amplification of errors. If A is singular and
  // pivots were perturbed, the whole solution is an error, and the backward error comes from the
  // perturbation.
  probe.condition_signal = distance / kShownOfCondition /
                           (factor.is_perturbed() ? u : std::max(u, check.errors().normwise));
  return probe;
}

}  // namespace crout
