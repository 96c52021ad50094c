// SPDX-License-Identifier: Apache-2.0

// Reduced row echelon form of a matrix, for any device.
#ifndef CROUT_KERNELS_JOBS_ECHELON_H_
#define CROUT_KERNELS_JOBS_ECHELON_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/echelon_reducer.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"

namespace crout {

struct EchelonOptions {
  const EchelonReducer* reducer = nullptr;
  // Number of augmented columns at the end: reduced with the others, but without pivots.
  int64_t augmented = 0;
  // If unset, the tolerance is max(rows, k) eps |A_k|_inf with follows_growth set (PivotTolerance).
  // A_k consists of the k columns that are not augmented. eps is the distance from 1 to the next
  // larger number of the type.
  std::optional<double> tolerance;
};

// The plan of a reduction. Equal ids denote a shared buffer. Created by PlanEchelonForm, then
// constant.
struct EchelonPlan {
  EchelonOptions options;
  PackedMatrix shape;  // A as received and the form as delivered, without data
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id matrix = 0;  // A column-major; the upload if it arrived so
  BufferPlan::Id workspace = 0;
  BufferPlan::Id scales = 0;  // row scales
  JobBytes bytes;             // `kept` is 0
  double seconds = 0;         // predicted
};

// Plans the job. INVALID_ARGUMENT if a size overflows, the tolerance is negative or not finite,
// there are more augmented columns than columns, or no reducer is given.
absl::StatusOr<EchelonPlan> PlanEchelonForm(const EchelonOptions& options, PackedMatrix shape);

// Reduces the matrix in `upload`, device memory that is consumed and may still be arriving, as in
// Factorize. Writes the form (EchelonReducer::Reduce) to `out`, host memory of plan.shape.bytes(),
// unless an error occurs. Blocks. INVALID_ARGUMENT for a NaN or Inf, with its position, and if the
// form overflows its type. CANCELLED if `stop` returned true.
absl::StatusOr<EchelonForm> ReduceToEchelonForm(ExecutionContext& context, const EchelonPlan& plan,
                                                Buffer upload, std::byte* out, StopRequested stop,
                                                KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_ECHELON_H_
