// SPDX-License-Identifier: Apache-2.0

// Applies the rule of numerics/accuracy_warnings.h to delivered solutions.
#ifndef CROUT_KERNELS_JOBS_ASSESS_SOLUTION_H_
#define CROUT_KERNELS_JOBS_ASSESS_SOLUTION_H_

#include <optional>

#include "kernels/factorization.h"
#include "kernels/matrix.h"
#include "kernels/numerics/accuracy_warnings.h"

namespace crout {

// Figures measured for a solution.
struct SolveFigures {
  std::optional<double> backward_error;
  double accepted = 0;     // largest acceptable backward error
  bool finite = true;      // false if another reported figure is not finite
  double matrix_norm = 0;  // |op(A)|_inf; 0: unknown
  double rhs_max_abs = 0;  // largest entry of B
};

// Returns the largest modulus in packed host memory (for complex numbers, the largest part), or NaN
// if any number is NaN or Inf.
double LargestOnHost(const PackedMatrix& matrix);

// Returns the warnings about X, which is in host memory. `factor` is the factor that was used, or
// null if there was none.
AccuracyWarnings AssessSolution(const FactorSummary* factor, const SolveFigures& figures,
                                const PackedMatrix& x);

}  // namespace crout

#endif  // CROUT_KERNELS_JOBS_ASSESS_SOLUTION_H_
