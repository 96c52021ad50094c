// SPDX-License-Identifier: Apache-2.0

// The products of the probe of a factorization.
#ifndef CROUT_KERNELS_CUDA_OPS_FACTOR_PROBE_H_
#define CROUT_KERNELS_CUDA_OPS_FACTOR_PROBE_H_

#include <cuda_runtime_api.h>

#include "kernels/matrix.h"
#include "kernels/numerics/factor_probe.h"

namespace crout::cuda {

// Enqueues probe.matrix_products() := z^T A, at memory bandwidth. One launch.
cudaError_t LaunchProbeMatrix(const AnyMatrix& a, const FactorProbe& probe, cudaStream_t stream);

// Enqueues probe.lower_products() := (P z)^T L. `ipiv`: null for no interchanges. Up to two
// launches; LaunchInspectFactor completes the probe.
cudaError_t LaunchProbeLower(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                             const FactorProbe& probe, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_FACTOR_PROBE_H_
