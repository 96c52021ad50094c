// SPDX-License-Identifier: Apache-2.0

// A random matrix on which methods are timed.
#ifndef CROUT_KERNELS_COSTS_TRIAL_PROBLEM_H_
#define CROUT_KERNELS_COSTS_TRIAL_PROBLEM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/lu_algorithm.h"
#include "kernels/memory.h"

namespace crout {

// A monotonic clock, in seconds.
using Timer = absl::FunctionRef<double()>;
double SteadySeconds();

double Median(std::vector<double> values);  // `values` must not be empty.

// A random n x n matrix, and device memory that suffices for any of the methods. Entries (for
// complex types, real and imaginary parts) are uniformly distributed in (-1, 1).
class TrialProblem {
 public:
  static absl::StatusOr<TrialProblem> Create(Device& device, DType dtype, int64_t n,
                                             std::span<const LuAlgorithm* const> algorithms,
                                             std::span<const TriangularSolver* const> solvers = {});

  // Returns the seconds of one factorization.
  absl::StatusOr<double> TimeFactor(ExecutionContext& context, const LuAlgorithm& algorithm,
                                    Timer timer = SteadySeconds);

  // Returns the seconds of one solve with one right-hand side, using the factors of the algorithm
  // timed last. Prepares them if the solver requires it; preparation is not timed.
  absl::StatusOr<double> TimeSolve(ExecutionContext& context, const TriangularSolver& solver,
                                   Timer timer = SteadySeconds);

 private:
  TrialProblem(DType dtype, int64_t n) : dtype_(dtype), n_(n) {}

  void Fill();
  AnyMatrix lu() const { return {lu_.data(), dtype_, n_, n_, n_}; }

  const DType dtype_;
  const int64_t n_;
  UnitDiagonal unit_diagonal_ = UnitDiagonal::kL;  // unit diagonal of the factor in lu_
  Buffer matrix_;                                  // in host memory
  Buffer lu_;
  Buffer ipiv_;
  Buffer rhs_;
  Buffer workspace_;
  Buffer prepared_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_COSTS_TRIAL_PROBLEM_H_
