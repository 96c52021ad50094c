// Solving with the factors of an irregular batch, written once for every device.
#ifndef CROUT_KERNELS_JOBS_BATCH_SOLVE_H_
#define CROUT_KERNELS_JOBS_BATCH_SOLVE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/batch_lu.h"
#include "kernels/factorization.h"
#include "kernels/jobs/buffer_plan.h"

namespace crout {

// Right-hand sides for some members of a batch, as they arrive: `systems` pairs of int64, a
// member's 0-based index and its number of columns, the members in ascending order; from there on
// their right-hand sides, laid out as PackMembers does with matrices of these sizes. In the batch's
// type.
struct BatchRightHandSides {
  int64_t systems = 0;
  size_t bytes = 0;  // of the values, as declared
};

struct BatchSolveOptions {
  const BatchLu* method = nullptr;
  Op op = Op::kNone;
  bool verify = true;  // report backward errors; needs the kept matrices
};

// What is told of each system, in host memory, one array after the other, in the order in which the
// right-hand sides arrived.
struct BatchSolveFigures {
  static constexpr size_t kBytesPerSystem = sizeof(double) + sizeof(int32_t);

  BatchSolveFigures(std::byte* memory, int64_t systems)
      : backward_error(reinterpret_cast<double*>(memory)),
        info(reinterpret_cast<int32_t*>(backward_error + systems)) {}

  // As BatchLu::BackwardErrors; NaN where it was not verified, and of a singular member.
  double* backward_error;
  int32_t* info;  // the member's: X is NaN where it is not 0
};

struct BatchSolveSummary {
  int64_t singular = 0;  // systems whose member is
  // The largest of the others'; NaN if one of them is. 0 if nothing was verified.
  double backward_error = 0;
  // Of the others: those whose error is not accepted (numerics/judgment.h), and the first of them,
  // by its place among the systems.
  int64_t inaccurate = 0;
  int64_t first_inaccurate = 0;
  Doubts doubts;  // of all
};

// Decided before the job runs. Made by PlanBatchSolve, then constant.
struct BatchSolvePlan {
  BatchSolveOptions options;
  BatchRightHandSides rhs;
  BatchExtent factor;
  BufferPlan buffers;
  BufferPlan::Id upload = 0;
  BufferPlan::Id solution = 0;  // a block like the upload, or the upload
  BufferPlan::Id members = 0;
  BufferPlan::Id errors = 0;
  BufferPlan::Id workspace = 0;
  size_t host_workspace = 0;
  size_t figures_bytes = 0;
  JobBytes bytes;
  double seconds = 0;  // predicted
};

// INVALID_ARGUMENT for numbers out of range; FAILED_PRECONDITION where errors are asked for and the
// batch's matrices were not kept.
absl::StatusOr<BatchSolvePlan> PlanBatchSolve(const BatchSolveOptions& options,
                                              const FactorSummary& factor, bool has_matrix,
                                              const BatchRightHandSides& rhs);

// Solves op(A_i) X_i = B_i for the right-hand sides in `upload` (device memory). The solutions go
// to `solution`, host memory of the plan's rhs.bytes, as they lie in the upload; what is told of
// them to `figures`, of plan.figures_bytes. Blocks as Solve does. INVALID_ARGUMENT, naming the
// member, for an index that the batch has not or that does not ascend, a member that is not square,
// and sizes that do not come to the declared bytes; CANCELLED when stopped. A singular member
// spoils its own solution alone, and NaN or Inf in a right-hand side does too.
absl::StatusOr<BatchSolveSummary> SolveBatch(ExecutionContext& context, const BatchSolvePlan& plan,
                                             const Factorization& factor, Buffer upload,
                                             std::byte* solution, std::byte* figures,
                                             StopRequested stop, KernelTimings& timings);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_BATCH_SOLVE_H_
