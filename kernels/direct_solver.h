// The interface of a method that solves AX = B in one go and leaves no factors behind.
#ifndef CROUT_KERNELS_DIRECT_SOLVER_H_
#define CROUT_KERNELS_DIRECT_SOLVER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/matrix.h"
#include "kernels/numerical_method.h"
#include "kernels/stop_requested.h"

namespace crout {

// Solves AX = B for a square A; with B = I, X is the inverse. What it did to A serves no later
// right-hand side: whoever solves again with the same A wants an LuAlgorithm. Immutable and
// thread-safe; each call runs on its own context.
class DirectSolver : public NumericalMethod {
 public:
  // Bytes of device memory that Solve needs beside its arguments, for an n x n matrix and an
  // n x nrhs right-hand side.
  virtual absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const = 0;

  // Seconds that Solve is expected to take: the cost model of admission, RetryInfo and Estimate.
  virtual double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const = 0;

  // Enqueues the solution. `a` (n x n) is destroyed; `b` (n x nrhs, of a's type) becomes X. Both
  // are device memory and finite; n, nrhs >= 0. After Synchronize() context.report().info is 0, or
  // the 1-based index of the first column that has no pivot: A is singular and `b` undefined. A
  // result that left the range of the type holds Inf or NaN. `workspace` is device memory of
  // WorkspaceBytes() or more, in use until Synchronize(). `stop` is asked between panels on the
  // host; a device reads DeviceReport::stop there (ExecutionContext::SynchronizeOrStop). A solver
  // that stopped leaves `b` undefined.
  virtual absl::Status Solve(ExecutionContext& context, const AnyMatrix& a, const AnyMatrix& b,
                             std::span<std::byte> workspace, StopRequested stop) const = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_DIRECT_SOLVER_H_
