// SPDX-License-Identifier: Apache-2.0

// Factorization of an irregular batch, for any device.
#ifndef CROUT_KERNELS_JOBS_BATCH_BATCH_FACTORIZE_H_
#define CROUT_KERNELS_JOBS_BATCH_BATCH_FACTORIZE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"

namespace crout {

struct BatchFactorizeOptions {
  const BatchLu* method = nullptr;
  // Keep the matrices with their factors; backward errors require them.
  bool keep_matrix = true;
};

// Figures of all members in host memory: one array per figure, in the order of the members below.
// See BatchFactors for their meaning.
struct BatchFigures {
  static constexpr size_t kBytesPerMember = 2 * sizeof(double) + sizeof(int32_t) + sizeof(float);
  // Bytes of the figures that a reply contains: all except pivot_condition.
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

// The plan of a batch factorization. Created by PlanBatchFactorize, then constant.
struct BatchFactorizePlan {
  BatchFactorizeOptions options;
  BatchExtent extent;  // declared by the client
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id lu = 0;  // equals `upload` if the matrices are not kept
  BufferPlan::Id ipiv = 0;
  BufferPlan::Id members = 0;
  BufferPlan::Id figures = 0;
  BufferPlan::Id workspace = 0;
  size_t host_workspace = 0;
  JobBytes bytes;
  double seconds = 0;  // predicted
};

// Plans the job for a batch of this extent; its max_diagonal and diagonals are ignored.
// INVALID_ARGUMENT if the extent has no valid size.
absl::StatusOr<BatchFactorizePlan> PlanBatchFactorize(const BatchFactorizeOptions& options,
                                                      BatchExtent extent);

// Returns the summary that is known before the factorization: types and sizes, without figures.
FactorSummary ExpectedSummary(const BatchFactorizePlan& plan);

// Factors the batch in `upload`. The upload is device memory in the layout of batch_payload.h; it
// is consumed and becomes the kept matrices or the factors. It may still be arriving, as in
// Factorize. Writes the figures of the members to `figures`, host memory of kSentBytesPerMember
// bytes per member. Blocks like Factorize.
//
// INVALID_ARGUMENT, with the index of the member, if the sizes differ from the declared ones;
// CANCELLED if `stop` returned true. Members that are singular or contain NaN or Inf are results,
// not errors.
absl::StatusOr<Factorization> FactorizeBatch(ExecutionContext& context,
                                             const BatchFactorizePlan& plan, Buffer upload,
                                             std::byte* figures, StopRequested stop,
                                             KernelTimings& timings);

// The parts of a batch factorization as views for methods. `matrix` has no data if the matrices
// were not kept.
struct BatchView {
  IrregularBatch lu;
  IrregularBatch matrix;
  BatchFactors factors;
};
BatchView ViewBatch(const Factorization& factorization);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BATCH_BATCH_FACTORIZE_H_
