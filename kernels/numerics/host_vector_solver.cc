// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/host_vector_solver.h"

#include <algorithm>

#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {

absl::Status HostVectorSolver::Solve(Op op, void* x, DType dtype, int64_t n) {
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
  MatrixOps& ops = context_.ops();
  const AnyMatrix v{device_vector_, dtype, n, 1, std::max<int64_t>(1, n)};
  const size_t bytes = n * SizeOf(dtype);
  CROUT_RETURN_IF_ERROR(ops.CopyToDevice(x, device_vector_, bytes));
  CROUT_RETURN_IF_ERROR(inverse_.Apply(op, v, v));
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(device_vector_, x, bytes));
  return context_.Synchronize();
}

}  // namespace crout
