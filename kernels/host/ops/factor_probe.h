// SPDX-License-Identifier: Apache-2.0

// Probe of a factorization in host memory.
#ifndef CROUT_KERNELS_HOST_OPS_FACTOR_PROBE_H_
#define CROUT_KERNELS_HOST_OPS_FACTOR_PROBE_H_

#include "kernels/matrix_ops.h"
#include "kernels/numerics/factor_probe.h"

namespace crout::host {

// Implements MatrixOps::StartProbe. `cores` as for ParallelFor; the result does not depend on it.
void StartFactorProbe(int cores, const AnyMatrix& a, const FactorProbe& probe);

// Returns FactorStats::probe of a factor, as MatrixOps::InspectFactor defines it. Tolerates an ipiv
// that is not a permutation, as a stopped factorization leaves it.
double FinishFactorProbe(int cores, const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                         const FactorProbe& probe);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_FACTOR_PROBE_H_
