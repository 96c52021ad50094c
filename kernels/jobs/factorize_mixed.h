// Factoring in a lower precision than the matrix's, for solves that are corrected.
#ifndef CROUT_KERNELS_JOBS_FACTORIZE_MIXED_H_
#define CROUT_KERNELS_JOBS_FACTORIZE_MIXED_H_

#include <optional>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/jobs/factorize.h"

namespace crout {

// What `auto` takes for a matrix of order n: the precision whose factor and one corrected solve are
// predicted to take least time; kAsTyped where a lower one gains little. `low` and `wide` as
// PlanMixed has them, the algorithms resolved. `rcond`: of a matrix close by, as of the factor that
// this one replaces; 0 where nothing is known. Single TF32 products are taken of matrices alone
// that are known to be well conditioned.
FactorPrecision ChoosePrecision(const Device& device, const FactorizeOptions& low,
                                const FactorizeOptions& wide, int64_t n, double rcond);

// Two factorizations of one matrix, of which the second runs where the first does not do. Made by
// PlanMixed, then constant.
struct MixedPlan {
  FactorPrecision precision = FactorPrecision::kSingle;  // of the first
  FactorizePlan low;
  FactorizePlan wide;  // of the A that the first kept
  // Of either, whichever takes more: the first's factor goes before the second begins.
  JobBytes bytes;
  double seconds = 0;  // predicted, of the first
};

// `low` and `wide` differ in the factor's type, and what was chosen for it; both keep the matrix.
// `shape` and `nonzeros` as PlanFactorize has them, and the errors too; INVALID_ARGUMENT also for a
// `low` that is not in single precision, a `wide` that is not in the matrix's type or wider, or a
// matrix that is not kept: without A nothing can be corrected.
absl::StatusOr<MixedPlan> PlanMixed(FactorPrecision precision, const FactorizeOptions& low,
                                    const FactorizeOptions& wide, PackedMatrix shape,
                                    std::optional<int64_t> nonzeros = std::nullopt);

// As Factorize. The factor is in single precision, unless a pivot was zero there, the factorization
// overflowed, or the condition estimate, where `low` asks for one, is so small that such a factor
// has no figure of the inverse right: then it is Widen()'s.
absl::StatusOr<Factorization> FactorizeMixed(ExecutionContext& context, const MixedPlan& plan,
                                             Buffer upload, StopRequested stop,
                                             KernelTimings& timings);

// The factor of plan.wide, of the matrix that `low` has kept and which goes to the result where it
// lies; the rest of `low` is freed first, also on an error. `why` is what the result's summary
// says.
absl::StatusOr<Factorization> Widen(ExecutionContext& context, const MixedPlan& plan,
                                    Factorization low, PrecisionFallback why, StopRequested stop,
                                    KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_FACTORIZE_MIXED_H_
