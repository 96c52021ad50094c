// SPDX-License-Identifier: Apache-2.0

// Interface of methods that solve AX = B in one pass without keeping factors.
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

// Solves AX = B for a square A. With B = I, X is the inverse. No factors remain for later
// right-hand sides; use an LuAlgorithm for repeated solves with one A. Immutable and thread-safe;
// each call runs on its own context.
class DirectSolver : public NumericalMethod {
 public:
  // Returns the workspace of Solve in bytes of device memory, for A n x n and B n x nrhs.
  virtual absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n, int64_t nrhs) const = 0;

  // Predicted seconds for Solve. Used by admission, RetryInfo and Estimate.
  virtual double PredictSeconds(DType dtype, int64_t n, int64_t nrhs) const = 0;

  // Enqueues the solve. On entry `a` is n x n and `b` is n x nrhs of the same type; both are finite
  // and in device memory; n, nrhs >= 0. On exit `b` is X, the diagonal of `a` holds the pivots, and
  // the other elements of `a` are undefined. `workspace` is device memory of at least
  // WorkspaceBytes(), in use until Synchronize().
  //
  // After Synchronize(), context.report().info is 0, or the 1-based index of the first column
  // without a pivot: A is singular; `a` and `b` are undefined. Elements of X that overflow the type
  // are Inf or NaN.
  //
  // The host polls `stop` between panels; a device reads DeviceReport::stop there
  // (ExecutionContext::SynchronizeOrStop). A stopped solve leaves `b` undefined.
  virtual absl::Status Solve(ExecutionContext& context, const AnyMatrix& a, const AnyMatrix& b,
                             std::span<std::byte> workspace, StopRequested stop) const = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_DIRECT_SOLVER_H_
