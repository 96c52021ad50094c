// Which buffers a factorization takes, decided before it runs.
#ifndef CROUT_KERNELS_JOBS_FACTORIZE_PLAN_H_
#define CROUT_KERNELS_JOBS_FACTORIZE_PLAN_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/factorization.h"

namespace crout {

// Sizes in bytes of the buffers of one Factorize call, and which of them are one.
struct FactorizePlan {
  size_t upload = 0;
  size_t matrix = 0;  // a column-major copy of A; 0 where the upload serves
  size_t lu = 0;      // 0 where the factor overwrites the upload or the copy
  size_t ipiv = 0;
  size_t scales = 0;
  size_t prepared = 0;  // for a solver
  size_t probe = 0;
  size_t workspace = 0;  // of the algorithm, then of the condition estimate: as charged
  JobBytes bytes;

  bool upload_is_matrix = false;  // A is read where it arrived
  bool lu_is_matrix = false;      // A is not kept and is overwritten
  bool lu_is_upload = false;      // A was copied and the upload is overwritten
};

// INVALID_ARGUMENT for a size that overflows or options without an algorithm.
absl::StatusOr<FactorizePlan> PlanFactorize(const FactorizeOptions& options, DType matrix_dtype,
                                            Layout layout, int64_t n);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_FACTORIZE_PLAN_H_
