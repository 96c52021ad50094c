// SPDX-License-Identifier: Apache-2.0

// Solves AX = B with a method that keeps no factors, for any device.
#ifndef CROUT_KERNELS_JOBS_DIRECT_SOLVE_H_
#define CROUT_KERNELS_JOBS_DIRECT_SOLVE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/direct_solver.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"

namespace crout {

struct DirectSolveOptions {
  const DirectSolver* solver = nullptr;
  DType dtype = DType::kFloat64;  // type of the computation
  bool verify = true;             // report the backward error; A is kept until it is known
};

// Summary of a solution: the figures by which the caller judges it.
struct DirectSolveSummary {
  std::string solver;
  int64_t n = 0;
  DType dtype = DType::kFloat64;
  DType matrix_dtype = DType::kFloat64;
  // > 0: 1-based index of the first column without a pivot. A is singular, or elements grew so much
  // that rounding errors cancelled the pivot.
  int64_t info = 0;
  double norm_one = 0;  // norms of A as received
  double norm_inf = 0;
  // Set if verified and info is 0, as in SolveSummary.
  std::optional<double> backward_error;
  AccuracyWarnings accuracy_warnings;
};

// The plan of a solve without factors. Equal ids denote a shared buffer. Created by
// PlanDirectSolve, then constant.
struct DirectSolvePlan {
  DirectSolveOptions options;
  PackedMatrix matrix_shape;  // A and B as received, without data
  PackedMatrix rhs_shape;
  PackedMatrix delivered;  // X as delivered, without data: like B, but complex if A is
  // Columns of the system that is solved. If A is real and B complex, real and imaginary parts are
  // separate columns.
  int64_t columns = 0;
  BufferPlan buffers;
  BufferPlan::Id matrix_upload = 0;
  BufferPlan::Id rhs_upload = 0;
  BufferPlan::Id a = 0;         // A, destroyed by the method
  BufferPlan::Id x = 0;         // B, then X, in the method's type
  BufferPlan::Id b = 0;         // B in the wide type; this and the next two are for verification
  BufferPlan::Id solution = 0;  // X in the wide type
  BufferPlan::Id residual = 0;
  BufferPlan::Id packed = 0;  // X as delivered; the upload of B if it is large enough
  BufferPlan::Id workspace = 0;
  JobBytes bytes;      // `kept` is 0
  double seconds = 0;  // predicted
};

// Plans the job. INVALID_ARGUMENT if the shapes do not match, a size overflows, or no solver is
// given.
absl::StatusOr<DirectSolvePlan> PlanDirectSolve(const DirectSolveOptions& options,
                                                PackedMatrix matrix_shape, PackedMatrix rhs_shape);

// Solves A X = B with A (n x n) in `matrix_upload` and B (n x nrhs) in `rhs_upload`. Both are
// device memory, packed as planned; they are consumed and may still be arriving, as in
// Factorize. Writes X to `out`, host memory of plan.delivered.bytes(), in B's precision and layout.
// `out` is not written if an error occurs before X is delivered.
//
// A singular matrix is a result with info > 0 and no X. Blocks like Factorize. INVALID_ARGUMENT if
// the shapes do not match. INVALID_ARGUMENT for NaN, Inf or an overflow of options.dtype in A or B,
// with the 0-based row and column of the first such element in payload order. CANCELLED if `stop`
// returned true.
absl::StatusOr<DirectSolveSummary> SolveDirectly(ExecutionContext& context,
                                                 const DirectSolvePlan& plan, Buffer matrix_upload,
                                                 Buffer rhs_upload, std::byte* out,
                                                 StopRequested stop, KernelTimings& timings);

// PlanDirectSolve, followed by SolveDirectly with that plan.
absl::StatusOr<DirectSolveSummary> SolveDirectly(ExecutionContext& context, Buffer matrix_upload,
                                                 PackedMatrix matrix_shape, Buffer rhs_upload,
                                                 PackedMatrix rhs_shape,
                                                 const DirectSolveOptions& options, std::byte* out,
                                                 StopRequested stop, KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_DIRECT_SOLVE_H_
