// SPDX-License-Identifier: Apache-2.0

// Solve tests that every device must pass. They report failures through GoogleTest.
#ifndef CROUT_TESTS_SUPPORT_RUNNERS_SOLVE_CASES_H_
#define CROUT_TESTS_SUPPORT_RUNNERS_SOLVE_CASES_H_

#include "kernels/device.h"

namespace crout::testing {

// Scales right-hand sides by powers of two from 2^-990 to 2^985 (1e-298 to 1e296). With a float32
// factor, the solutions must be scaled by the same powers and the backward errors must not change.
// Refinement must reach the roundoff of float64, and the forward error bound must hold.
void ExpectSolutionsScaleWithRightHandSides(Device& device);

// Solves a system in which only one small equation is inaccurate: the normwise backward error is at
// roundoff, but the componentwise error is large. Refinement by the componentwise error must
// correct the solution. Refinement by the normwise error must not change it.
void ExpectComponentwiseRefinementCorrectsSolution(Device& device);

// Solves systems in which the norms of A or the sums in A x overflow. The normwise and the
// componentwise backward error must be correct.
void ExpectErrorsAtTheEndOfTheRange(Device& device);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_RUNNERS_SOLVE_CASES_H_
