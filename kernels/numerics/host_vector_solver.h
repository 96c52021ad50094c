// Applies an inverse to a vector in host memory, as the norm estimator asks for.
#ifndef CROUT_KERNELS_NUMERICS_HOST_VECTOR_SOLVER_H_
#define CROUT_KERNELS_NUMERICS_HOST_VECTOR_SOLVER_H_

#include <span>

#include "absl/status/status.h"
#include "kernels/execution_context.h"
#include "kernels/inverse_operator.h"
#include "kernels/stop_requested.h"

namespace crout {

// Borrows everything. `device_vector`: n float64 in device memory.
class HostVectorSolver {
 public:
  HostVectorSolver(ExecutionContext& context, InverseOperator& inverse, double* device_vector,
                   StopRequested stop)
      : context_(context), inverse_(inverse), device_vector_(device_vector), stop_(stop) {}

  // x := op(A)^-1 x. Blocks; CANCELLED if a stop was requested.
  absl::Status Solve(Op op, std::span<double> x);

 private:
  ExecutionContext& context_;
  InverseOperator& inverse_;
  double* device_vector_;
  StopRequested stop_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_HOST_VECTOR_SOLVER_H_
