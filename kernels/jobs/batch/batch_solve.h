// SPDX-License-Identifier: Apache-2.0

// Solves with the factors of an irregular batch, for any device.
#ifndef CROUT_KERNELS_JOBS_BATCH_BATCH_SOLVE_H_
#define CROUT_KERNELS_JOBS_BATCH_BATCH_SOLVE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"

namespace crout {

// Right-hand sides for some members of a batch, as received: `systems` pairs of int64, the 0-based
// index of a member and its number of columns, with ascending indices. The right-hand sides follow,
// laid out as PackMembers does for matrices of these sizes, in the batch's type.
struct BatchRightHandSides {
  int64_t systems = 0;
  size_t bytes = 0;  // declared size of the values
};

struct BatchSolveOptions {
  const BatchLu* method = nullptr;
  Op op = Op::kNone;
  bool verify = true;  // report backward errors; requires the kept matrices
};

// Figures of all systems in host memory: one array per figure, in the order in which the right-hand
// sides arrived.
struct BatchSolveFigures {
  static constexpr size_t kBytesPerSystem = sizeof(double) + sizeof(int32_t);

  BatchSolveFigures(std::byte* memory, int64_t systems)
      : backward_error(reinterpret_cast<double*>(memory)),
        info(reinterpret_cast<int32_t*>(backward_error + systems)) {}

  // See BatchLu::BackwardErrors. NaN if the member is singular or the error was not measured.
  double* backward_error;
  int32_t* info;  // info of the member; X is NaN if it is not 0
};

struct BatchSolveSummary {
  int64_t singular = 0;  // systems whose member is singular
  // Largest error of the other systems; NaN if any of them is NaN. 0 if nothing was verified.
  double backward_error = 0;
  // Number of other systems whose error is not accepted (numerics/accuracy_warnings.h), and the
  // position of the first one among the systems.
  int64_t inaccurate = 0;
  int64_t first_inaccurate = 0;
  AccuracyWarnings accuracy_warnings;  // over all systems
};

// The plan of a batch solve. Created by PlanBatchSolve, then constant.
struct BatchSolvePlan {
  BatchSolveOptions options;
  BatchRightHandSides rhs;
  BatchExtent factor;
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id solution = 0;  // a block like the upload, or the upload itself
  BufferPlan::Id members = 0;
  BufferPlan::Id errors = 0;
  BufferPlan::Id workspace = 0;
  size_t host_workspace = 0;
  size_t figures_bytes = 0;
  JobBytes bytes;
  double seconds = 0;  // predicted
};

// Plans the job. INVALID_ARGUMENT for numbers out of range; FAILED_PRECONDITION if errors are
// requested and the batch's matrices were not kept.
absl::StatusOr<BatchSolvePlan> PlanBatchSolve(const BatchSolveOptions& options,
                                              const FactorSummary& factor, bool has_matrix,
                                              const BatchRightHandSides& rhs);

// Solves op(A_i) X_i = B_i for the right-hand sides in `upload` (device memory). Writes the
// solutions, in the layout of the upload, to `solution`, host memory of plan.rhs.bytes bytes, and
// the figures to `figures`, host memory of plan.figures_bytes bytes. Blocks like Solve.
//
// INVALID_ARGUMENT, with the index of the member, if an index is out of range or not ascending, a
// member is not square, or the sizes do not add up to the declared bytes. CANCELLED if `stop`
// returned true. A singular member, or NaN or Inf in a right-hand side, invalidates only that
// system's solution.
absl::StatusOr<BatchSolveSummary> SolveBatch(ExecutionContext& context, const BatchSolvePlan& plan,
                                             const Factorization& factor, Buffer upload,
                                             std::byte* solution, std::byte* figures,
                                             StopRequested stop, KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BATCH_BATCH_SOLVE_H_
