#include "kernels/numerics/host_vector_solver.h"

#include <algorithm>

#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {

absl::Status HostVectorSolver::Solve(Op op, std::span<double> x) {
  CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
  MatrixOps& ops = context_.ops();
  const auto n = static_cast<int64_t>(x.size());
  const MatrixView<double> v{device_vector_, n, 1, std::max<int64_t>(1, n)};
  CROUT_RETURN_IF_ERROR(ops.CopyToDevice(x.data(), device_vector_, x.size_bytes()));
  CROUT_RETURN_IF_ERROR(inverse_.Apply(op, v, v));
  CROUT_RETURN_IF_ERROR(ops.CopyToHost(device_vector_, x.data(), x.size_bytes()));
  return context_.Synchronize();
}

}  // namespace crout
