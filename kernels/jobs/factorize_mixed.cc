// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/factorize_mixed.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// A factor in single precision resolves condition numbers up to about 1 / u, with u its unit
// roundoff, and corrected solves of random matrices of order 32768 still converge there. An
// estimate below this threshold means that rounding made the matrix singular.
constexpr double kMinRcond = 0x1p-24 / 64;

std::optional<PrecisionFallback> FallbackReason(const FactorSummary& low) {
  if (low.info > 0 || low.pivot_replaced || !std::isfinite(low.pivot_growth) ||
      !std::isfinite(low.quality.value_or(0))) {
    return PrecisionFallback::kUnusable;
  }
  if (low.rcond && low.rcond_scaled.value_or(*low.rcond) < kMinRcond) {
    return PrecisionFallback::kCondition;
  }
  return std::nullopt;
}

}  // namespace

FactorPrecision ChoosePrecision(const Device& device, const FactorizeOptions& low,
                                const FactorizeOptions& wide, int64_t n, double rcond) {
  // For smaller orders, float32 takes nearly as long as float64, because panels dominate.
  constexpr int64_t kMinOrder = 8192;
  if (n < kMinOrder) return FactorPrecision::kFactorType;
  const MethodTraits& traits = low.algorithm->traits();
  FactorSummary made;
  made.n = n;
  made.factor_dtype = low.factor_dtype;
  made.unit_diagonal = traits.unit_diagonal;
  if (FindSolverToPrepare(device, made.unit_diagonal, made.factor_dtype) != nullptr) {
    made.preparation.emplace();
  }
  const absl::StatusOr<const TriangularSolver*> solver =
      FindSolver(device, "auto", made, /*nrhs=*/1);
  if (!solver.ok()) return FactorPrecision::kFactorType;
  // For worse conditioned matrices, GMRES costs as much as the factor saves, if it converges at
  // all.
  constexpr double kMinRcondForMixed = 1e-6;
  if (rcond > 0 && rcond < kMinRcondForMixed) return FactorPrecision::kFactorType;
  // Random matrices need 2 corrections at order 8192, 3 at 16384 and 4 at 32768 (gpu_mixed_bench).
  // Each is a solve with the factor and a product with A, which reads as much as a solve in A's
  // type.
  const double corrections = (2 + static_cast<double>(n) / 8192) *
                             ((*solver)->PredictSeconds(low.factor_dtype, n, /*nrhs=*/1) +
                              (*solver)->PredictSeconds(wide.factor_dtype, n, /*nrhs=*/1));
  const double in_float64 = wide.algorithm->PredictSeconds(wide.factor_dtype, n);
  const double in_single = low.algorithm->PredictSeconds(low.factor_dtype, n);
  // An unsuitable matrix is factored twice, so a gain of a few percent is not worthwhile.
  constexpr double kMaxTimeRatio = 0.85;
  if (in_single + corrections >= kMaxTimeRatio * in_float64) return FactorPrecision::kFactorType;
  constexpr double kWellConditioned = 1e-3;
  return rcond >= kWellConditioned && traits.supports_tf32_products ? FactorPrecision::kTf32
                                                                    : FactorPrecision::kSingle;
}

absl::StatusOr<MixedPlan> PlanMixed(FactorPrecision precision, const FactorizeOptions& low,
                                    const FactorizeOptions& wide, PackedMatrix shape,
                                    std::optional<int64_t> nonzeros) {
  if (!low.keep_matrix || !wide.keep_matrix) {
    return absl::InvalidArgumentError(
        "a low-precision factor needs the matrix, because solves are corrected with it. Keep the "
        "matrix");
  }
  if (RealOf(low.factor_dtype) != DType::kFloat32 || RealOf(wide.factor_dtype) != DType::kFloat64) {
    return absl::InvalidArgumentError(
        "a low-precision factor must be in single precision, and the wide one in double precision");
  }
  MixedPlan plan;
  plan.precision = precision;
  CROUT_ASSIGN_OR_RETURN(plan.low, PlanFactorize(low, shape, nonzeros));
  PackedMatrix kept = shape;
  kept.layout = Layout::kColumnMajor;
  CROUT_ASSIGN_OR_RETURN(plan.wide, PlanFactorize(wide, kept, nonzeros));
  plan.bytes = plan.low.bytes;
  plan.bytes.kept = std::max(plan.low.bytes.kept, plan.wide.bytes.kept);
  plan.bytes.peak = std::max(plan.low.bytes.peak, plan.wide.bytes.peak);
  plan.bytes.report = std::max(plan.low.bytes.report, plan.wide.bytes.report);
  plan.seconds = plan.low.seconds;
  return plan;
}

absl::StatusOr<Factorization> FactorizeMixed(ExecutionContext& context, const MixedPlan& plan,
                                             Buffer upload, StopRequested stop,
                                             KernelTimings& timings) {
  CROUT_ASSIGN_OR_RETURN(Factorization low,
                         Factorize(context, plan.low, std::move(upload), stop, timings));
  low.summary.precision = plan.precision;
  // The determinant belongs to A rounded to single precision. Its sign may be wrong for A.
  low.summary.det_sign.reset();
  low.summary.det_log_abs.reset();
  low.summary.det_sign_imaginary = 0;
  const std::optional<PrecisionFallback> why = FallbackReason(low.summary);
  if (!why) return low;
  return RefactorInFloat64(context, plan, std::move(low), *why, stop, timings);
}

absl::StatusOr<Factorization> RefactorInFloat64(ExecutionContext& context, const MixedPlan& plan,
                                                Factorization low, PrecisionFallback why,
                                                StopRequested stop, KernelTimings& timings) {
  Buffer matrix = low.parts.Take(plan.low.nonzeros ? kSparseMatrixPart : kMatrixPart);
  low = {};  // frees the memory of its factor for the next one
  CROUT_ASSIGN_OR_RETURN(Factorization wide,
                         Factorize(context, plan.wide, std::move(matrix), stop, timings));
  wide.summary.precision_fallback = why;
  return wide;
}

}  // namespace crout
