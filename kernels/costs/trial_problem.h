// A random matrix that methods factor for nothing but the time that it takes.
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

// Seconds on a clock that never goes back.
using Timer = absl::FunctionRef<double()>;
double SteadySeconds();

double Median(std::vector<double> values);  // not empty

// n x n, entries (parts of complex ones) uniform in (-1, 1), with memory of the device for any of
// the methods.
class TrialProblem {
 public:
  static absl::StatusOr<TrialProblem> Create(Device& device, DType dtype, int64_t n,
                                             std::span<const LuAlgorithm* const> algorithms,
                                             std::span<const TriangularSolver* const> solvers = {});

  // Seconds of one factorization.
  absl::StatusOr<double> TimeFactor(ExecutionContext& context, const LuAlgorithm& algorithm,
                                    Timer timer = SteadySeconds);

  // Seconds of one solve, of one right-hand side, with what the algorithm timed last left; prepared
  // for the solver where it needs that, which is not timed.
  absl::StatusOr<double> TimeSolve(ExecutionContext& context, const TriangularSolver& solver,
                                   Timer timer = SteadySeconds);

 private:
  TrialProblem(DType dtype, int64_t n) : dtype_(dtype), n_(n) {}

  void Fill();
  AnyMatrix lu() const { return {lu_.data(), dtype_, n_, n_, n_}; }

  const DType dtype_;
  const int64_t n_;
  UnitDiagonal unit_diagonal_ = UnitDiagonal::kL;  // of what is in lu_
  Buffer matrix_;                                  // on the host
  Buffer lu_;
  Buffer ipiv_;
  Buffer rhs_;
  Buffer workspace_;
  Buffer prepared_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_COSTS_TRIAL_PROBLEM_H_
