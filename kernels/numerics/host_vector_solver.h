// Solves with a factor for a vector in host memory, as the norm estimator asks for.
#ifndef CROUT_KERNELS_NUMERICS_HOST_VECTOR_SOLVER_H_
#define CROUT_KERNELS_NUMERICS_HOST_VECTOR_SOLVER_H_

#include <span>

#include "absl/status/status.h"
#include "kernels/factorization.h"
#include "kernels/numerics/factor_solver.h"

namespace crout {

// Borrows everything. `device_vector`: n float64 in device memory.
class HostVectorSolver {
 public:
  HostVectorSolver(ExecutionContext& context, FactorSolver& solver, double* device_vector,
                   SolveWith with, StopRequested stop)
      : context_(context),
        solver_(solver),
        device_vector_(device_vector),
        with_(with),
        stop_(stop) {}

  // x := op(A)^-1 x. Blocks; CANCELLED if a stop was requested.
  absl::Status Solve(Op op, std::span<double> x);

 private:
  ExecutionContext& context_;
  FactorSolver& solver_;
  double* device_vector_;
  SolveWith with_;
  StopRequested stop_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_HOST_VECTOR_SOLVER_H_
