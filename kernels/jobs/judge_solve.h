// Judging solutions as they are delivered, by the rule of numerics/judgment.h.
#ifndef CROUT_KERNELS_JOBS_JUDGE_SOLVE_H_
#define CROUT_KERNELS_JOBS_JUDGE_SOLVE_H_

#include <optional>

#include "kernels/factorization.h"
#include "kernels/matrix.h"
#include "kernels/numerics/judgment.h"

namespace crout {

// What was measured of a solution.
struct SolveFigures {
  std::optional<double> backward_error;
  double accepted = 0;     // the largest backward error that serves
  bool finite = true;      // the figures beside it
  double matrix_norm = 0;  // of op(A), infinity-norm; 0: unknown
  double rhs_max_abs = 0;  // of B
};

// Largest modulus in packed host memory, of a complex number its larger part; NaN or Inf if one is.
double LargestOnHost(const PackedMatrix& matrix);

// Doubts about X, in host memory, that was solved for with `factor`; null: without one.
Doubts JudgeSolution(const FactorSummary* factor, const SolveFigures& figures,
                     const PackedMatrix& x);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_JUDGE_SOLVE_H_
