// SPDX-License-Identifier: Apache-2.0

// The factor ratio of matrices too large for the host's reference.
#ifndef CROUT_TESTS_BENCH_FACTOR_RESIDUAL_H_
#define CROUT_TESTS_BENCH_FACTOR_RESIDUAL_H_

#include <cstdint>

#include "kernels/execution_context.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"

namespace crout {

// Returns |PA - LU|_1 / (n |A|_1 eps), with eps of the element type, where |z| is the modulus.
// Needs device memory for three more matrices. `a` and the factor must have the same order and
// type. Products are computed in float64.
double FactorRatioOnDevice(ExecutionContext& context, const AnyMatrix& a, const FactorView& factor);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_FACTOR_RESIDUAL_H_
