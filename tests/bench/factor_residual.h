// The factor ratio of matrices too large for the host's reference.
#ifndef CROUT_TESTS_BENCH_FACTOR_RESIDUAL_H_
#define CROUT_TESTS_BENCH_FACTOR_RESIDUAL_H_

#include <cstdint>

#include "kernels/execution_context.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"

namespace crout {

// |PA - LU|_1 / (n |A|_1 eps), eps of the type, in device memory beside its arguments: three more
// matrices. a and the factor have one order and type; the products have float64's precision. |z| is
// the modulus.
double FactorRatioOnDevice(ExecutionContext& context, const AnyMatrix& a, const FactorView& factor);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_FACTOR_RESIDUAL_H_
