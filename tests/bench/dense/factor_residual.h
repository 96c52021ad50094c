// SPDX-License-Identifier: Apache-2.0

// The factor ratio on a GPU, for matrices that are too large for the host's reference.
#ifndef CROUT_TESTS_BENCH_DENSE_FACTOR_RESIDUAL_H_
#define CROUT_TESTS_BENCH_DENSE_FACTOR_RESIDUAL_H_

#include <cstdint>

#include "kernels/execution_context.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"

namespace crout {

// Returns |PA - LU|_1 / (n |A|_1 eps), where eps is the unit roundoff of the element type and |z|
// is the modulus. `a` and the factor must have the same order and type. Products are computed in
// float64. Needs device memory for three more matrices. Exits on an error.
double FactorRatioOnDevice(ExecutionContext& context, const AnyMatrix& a, const FactorView& factor);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_DENSE_FACTOR_RESIDUAL_H_
