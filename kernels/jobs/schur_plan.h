// Which buffers a Schur complement takes, decided before it runs.
#ifndef CROUT_KERNELS_JOBS_SCHUR_PLAN_H_
#define CROUT_KERNELS_JOBS_SCHUR_PLAN_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/jobs/schur.h"

namespace crout {

inline constexpr int64_t kSchurProbeVectors = 4;

// Sizes in bytes of the buffers of one call; 0 for those it does without.
struct SchurPlan {
  size_t upload = 0;
  size_t matrix = 0;     // A by columns; 0 where the upload is that
  size_t leading = 0;    // A11, which Factorize consumes
  size_t work = 0;       // A12, then X, in the factor's type
  size_t x = 0;          // X in the matrix's type; 0 where `work` is that
  size_t workspace = 0;  // of the solver
  size_t packed = 0;     // S as it is delivered; 0 where the upload has room
  size_t probe = 0;      // v, A v, S z and zeros, n float64 each
  JobBytes bytes;
};

// INVALID_ARGUMENT for a size that overflows, a k out of range, or options without an algorithm or
// a solver.
absl::StatusOr<SchurPlan> PlanSchur(const SchurOptions& options, DType matrix_dtype, Layout layout,
                                    int64_t n);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_SCHUR_PLAN_H_
