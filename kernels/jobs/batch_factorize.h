// Factorization of an irregular batch, written once for every device.
#ifndef CROUT_KERNELS_JOBS_BATCH_FACTORIZE_H_
#define CROUT_KERNELS_JOBS_BATCH_FACTORIZE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"

namespace crout {

struct BatchFactorizeOptions {
  const BatchLu* method = nullptr;
  // Keep the matrices beside their factors, as backward errors need them.
  bool keep_matrix = true;
};

// What is told of each member, in host memory, one array after the other (BatchFactors).
struct BatchFigures {
  static constexpr size_t kBytesPerMember = 2 * sizeof(double) + sizeof(int32_t) + sizeof(float);
  // Of those that a reply has: all but pivot_condition.
  static constexpr size_t kSentBytesPerMember = kBytesPerMember - sizeof(float);

  BatchFigures(std::byte* memory, int64_t members)
      : pivot_growth(reinterpret_cast<double*>(memory)),
        quality(pivot_growth + members),
        info(reinterpret_cast<int32_t*>(quality + members)),
        pivot_condition(reinterpret_cast<float*>(info + members)) {}

  double* pivot_growth;
  double* quality;
  int32_t* info;
  float* pivot_condition;
};

// Decided before the job runs. Made by PlanBatchFactorize, then constant.
struct BatchFactorizePlan {
  BatchFactorizeOptions options;
  BatchExtent extent;  // as declared
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id lu = 0;  // the upload, if the matrices are not kept
  BufferPlan::Id ipiv = 0;
  BufferPlan::Id members = 0;
  BufferPlan::Id figures = 0;
  BufferPlan::Id workspace = 0;
  size_t host_workspace = 0;
  JobBytes bytes;
  double seconds = 0;  // predicted
};

// For a batch of this extent, max_diagonal and diagonals aside. INVALID_ARGUMENT where it has no
// valid size.
absl::StatusOr<BatchFactorizePlan> PlanBatchFactorize(const BatchFactorizeOptions& options,
                                                      BatchExtent extent);

// What will be known of the factors before they exist: types, sizes, no figures.
FactorSummary ExpectedSummary(const BatchFactorizePlan& plan);

// Factors the batch in `upload` (device memory, as batch_payload.h says; consumed, and reused as
// the kept matrices or as the factors). Figures of the members go to `figures`, host memory of
// kSentBytesPerMember for each. Blocks as Factorize does, and takes an upload as that does.
// INVALID_ARGUMENT where the sizes of the members are not those that the plan was made for, with
// the member's index; CANCELLED when stopped. Singular members, and such with NaN or Inf, are
// results.
absl::StatusOr<Factorization> FactorizeBatch(ExecutionContext& context,
                                             const BatchFactorizePlan& plan, Buffer upload,
                                             std::byte* figures, StopRequested stop,
                                             KernelTimings& timings);

// The parts of a batch's factorization as methods see them. `matrix` has no data where the matrices
// were not kept.
struct BatchView {
  IrregularBatch lu;
  IrregularBatch matrix;
  BatchFactors factors;
};
BatchView ViewBatch(const Factorization& factorization);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BATCH_FACTORIZE_H_
