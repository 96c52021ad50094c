// SPDX-License-Identifier: Apache-2.0

// Solve tests that hold on every device. The test program supplies the device.
#ifndef CROUT_TESTS_SUPPORT_SOLVE_CASES_H_
#define CROUT_TESTS_SUPPORT_SOLVE_CASES_H_

#include "kernels/device.h"

namespace crout::testing {

// With a float32 factor, right-hand sides scaled between 2^-990 and 2^985 (1e-298 to 1e296) give
// the same solution times the power of two and the same backward error. Refinement reaches the same
// accuracy, and the forward error bound holds.
void ExpectMultiplesOfRightHandSidesSolveAlike(Device& device);

// One small equation is wrong while the normwise backward error is at roundoff, so the
// componentwise error is large. Refinement by the componentwise error corrects it. Refinement by
// the normwise error does nothing.
void ExpectComponentwiseRefinementCorrects(Device& device);

// Both backward errors are correct if the norms of A or the terms of A x overflow.
void ExpectErrorsAtTheEndOfTheRange(Device& device);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_SOLVE_CASES_H_
