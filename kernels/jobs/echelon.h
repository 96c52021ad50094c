// The reduced row echelon form of a matrix, written once for every device.
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
  // The last so many columns are reduced along, and hold no pivots.
  int64_t augmented = 0;
  // Unset: max(rows, k) eps |A|_inf of the k columns that are not augmented, eps the distance of 1
  // from the next number of the type; it follows growth then (PivotTolerance).
  std::optional<double> tolerance;
};

// A reduction, decided before it runs, and its buffers. Where two ids are equal one buffer serves
// for both. Made by PlanEchelonForm, then constant.
struct EchelonPlan {
  EchelonOptions options;
  PackedMatrix shape;  // of A as it arrives, and of the form as it is delivered, without data
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id matrix = 0;  // A by columns: the upload, where it arrived so
  BufferPlan::Id workspace = 0;
  BufferPlan::Id scales = 0;  // of rows
  JobBytes bytes;             // nothing is kept
  double seconds = 0;         // predicted
};

// INVALID_ARGUMENT for a size that overflows, a tolerance that is negative or not finite, augmented
// columns that the matrix has not, or options without a reducer.
absl::StatusOr<EchelonPlan> PlanEchelonForm(const EchelonOptions& options, PackedMatrix shape);

// Reduces the matrix in `upload`, device memory, which is consumed and, like the upload of
// Factorize, need not have arrived. The form (EchelonReducer::Reduce) goes to `out`, host memory of
// plan.shape.bytes(), unless there is an error. Blocks. INVALID_ARGUMENT for a NaN or Inf, with its
// position, and for a form that leaves the range of its type; CANCELLED when stopped.
absl::StatusOr<EchelonForm> ReduceToEchelonForm(ExecutionContext& context, const EchelonPlan& plan,
                                                Buffer upload, std::byte* out, StopRequested stop,
                                                KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_ECHELON_H_
