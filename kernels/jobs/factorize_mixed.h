// SPDX-License-Identifier: Apache-2.0

// Factorization in a lower precision than the matrix's, for solves with correction.
#ifndef CROUT_KERNELS_JOBS_FACTORIZE_MIXED_H_
#define CROUT_KERNELS_JOBS_FACTORIZE_MIXED_H_

#include <optional>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/jobs/factorize.h"

namespace crout {

// Returns the precision that `auto` selects for order n. It has the smallest predicted time of a
// factorization and one corrected solve, or is kFactorType if a lower precision gains little. `low`
// and `wide` are as in PlanMixed, with algorithms resolved.
//
// `rcond` is the reciprocal condition number of a nearby matrix, for example of the matrix whose
// factor is replaced; 0 if unknown. TF32 products are selected only if `rcond` shows a
// well-conditioned matrix.
FactorPrecision ChoosePrecision(const Device& device, const FactorizeOptions& low,
                                const FactorizeOptions& wide, int64_t n, double rcond);

// The plan of two factorizations of one matrix; the second runs if the first is not usable. Created
// by PlanMixed, then constant.
struct MixedPlan {
  FactorPrecision precision = FactorPrecision::kSingle;  // precision of `low`
  FactorizePlan low;
  FactorizePlan wide;  // factors the A that `low` kept
  // Maximum over both: the first factor is freed before the second factorization starts.
  JobBytes bytes;
  double seconds = 0;  // predicted, for the first
};

// Plans the job. `low` and `wide` differ in the factor's type and in the methods chosen for it.
// Both must keep the matrix, because corrections require A. `shape`, `nonzeros` and errors as in
// PlanFactorize. Also INVALID_ARGUMENT if `low` is not in single precision, `wide` is not in double
// precision, or a matrix is not kept.
absl::StatusOr<MixedPlan> PlanMixed(FactorPrecision precision, const FactorizeOptions& low,
                                    const FactorizeOptions& wide, PackedMatrix shape,
                                    std::optional<int64_t> nonzeros = std::nullopt);

// Same as Factorize, with a factor in single precision. Falls back to RefactorInFloat64() if a
// pivot is zero or the factorization overflows. Also falls back if the condition estimate (if `low`
// requests one) is so small that the factor gives no correct digit of the inverse.
absl::StatusOr<Factorization> FactorizeMixed(ExecutionContext& context, const MixedPlan& plan,
                                             Buffer upload, StopRequested stop,
                                             KernelTimings& timings);

// Factors the matrix kept with `low` by plan.wide; the matrix moves to the result without a copy.
// The rest of `low` is freed first, also on an error. The result's summary reports `why`.
absl::StatusOr<Factorization> RefactorInFloat64(ExecutionContext& context, const MixedPlan& plan,
                                                Factorization low, PrecisionFallback why,
                                                StopRequested stop, KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_FACTORIZE_MIXED_H_
