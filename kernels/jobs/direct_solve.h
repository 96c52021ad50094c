// Solving AX = B with a method that leaves no factors, written once for every device.
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
  DType dtype = DType::kFloat64;  // that the method computes in
  bool verify = true;             // report the backward error: A is kept until it is known
};

// What the caller needs in order to trust a solution.
struct DirectSolveSummary {
  std::string solver;
  int64_t n = 0;
  DType dtype = DType::kFloat64;
  DType matrix_dtype = DType::kFloat64;
  int64_t info = 0;     // > 0: 1-based index of the first column without a pivot: A is singular
  double norm_one = 0;  // of A as it arrived
  double norm_inf = 0;
  // When verified and not singular, as in SolveSummary.
  std::optional<double> backward_error;
  Doubts doubts;
};

// A solve without factors, decided before it runs, and its buffers. Where two ids are equal one
// buffer serves for both. Made by PlanDirectSolve, then constant.
struct DirectSolvePlan {
  DirectSolveOptions options;
  PackedMatrix matrix_shape;  // of A and B as they arrive, without data
  PackedMatrix rhs_shape;
  PackedMatrix delivered;  // of X, likewise: B's, but complex where A is
  // Of B as it is solved for: where A is real and B complex, its real parts and its imaginary ones
  // are columns of their own.
  int64_t columns = 0;
  BufferPlan buffers;
  BufferPlan::Id matrix_upload = 0;
  BufferPlan::Id rhs_upload = 0;
  BufferPlan::Id a = 0;         // A as the method destroys it
  BufferPlan::Id x = 0;         // B, then X, in the method's type
  BufferPlan::Id b = 0;         // B in the wide type; this and the next two to verify the solution
  BufferPlan::Id solution = 0;  // X in the wide type
  BufferPlan::Id residual = 0;
  BufferPlan::Id packed = 0;  // X as it is delivered: the upload of B, where that has room
  BufferPlan::Id workspace = 0;
  JobBytes bytes;      // nothing is kept
  double seconds = 0;  // predicted
};

// INVALID_ARGUMENT for shapes that do not fit, a size that overflows or options without a solver.
absl::StatusOr<DirectSolvePlan> PlanDirectSolve(const DirectSolveOptions& options,
                                                PackedMatrix matrix_shape, PackedMatrix rhs_shape);

// Solves A X = B: A (n x n) in `matrix_upload`, B (n x nrhs) in `rhs_upload`, device memory, packed
// as the plan says; both are consumed and, like the upload of Factorize, need not have arrived. X
// goes to `out`, host memory of the plan's delivered.bytes(), in B's precision and layout; nothing
// is written there unless the solve gets that far. A singular matrix is a result with info > 0,
// without X. Blocks as Factorize does. INVALID_ARGUMENT for shapes that do not fit, and for NaN,
// Inf or an overflow of options.dtype in A or B, with row and column (0-based) of the first in
// payload order; CANCELLED when stopped.
absl::StatusOr<DirectSolveSummary> SolveDirectly(ExecutionContext& context,
                                                 const DirectSolvePlan& plan, Buffer matrix_upload,
                                                 Buffer rhs_upload, std::byte* out,
                                                 StopRequested stop, KernelTimings& timings);

// PlanDirectSolve, and then SolveDirectly by that plan.
absl::StatusOr<DirectSolveSummary> SolveDirectly(ExecutionContext& context, Buffer matrix_upload,
                                                 PackedMatrix matrix_shape, Buffer rhs_upload,
                                                 PackedMatrix rhs_shape,
                                                 const DirectSolveOptions& options, std::byte* out,
                                                 StopRequested stop, KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_DIRECT_SOLVE_H_
