// What holds of solves on every device, expected of the one that a test brings.
#ifndef CROUT_TESTS_SUPPORT_SOLVE_CASES_H_
#define CROUT_TESTS_SUPPORT_SOLVE_CASES_H_

#include "kernels/device.h"

namespace crout::testing {

// With a float32 factor, right-hand sides from 2^-990 to 2^985 (1e-298 to 1e296) have the same
// solution, times the power of two, and the same backward error; they refine as far, and their
// forward error bound holds.
void ExpectMultiplesOfRightHandSidesSolveAlike(Device& device);

// A small equation is wrong while the normwise backward error is at roundoff: the componentwise one
// says so, and refinement that goes by it mends it; refinement that does not, does nothing.
void ExpectComponentwiseRefinementMends(Device& device);

// Backward errors of both kinds are right where the norms of A, or the terms of A x, overflow.
void ExpectErrorsAtTheEndOfTheRange(Device& device);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_SOLVE_CASES_H_
