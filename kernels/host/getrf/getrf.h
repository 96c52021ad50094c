// SPDX-License-Identifier: Apache-2.0

// LAPACK's LU factorization on the host.
#ifndef CROUT_KERNELS_HOST_GETRF_GETRF_H_
#define CROUT_KERNELS_HOST_GETRF_GETRF_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// "getrf": OpenBLAS's xGETRF, recursive right-looking Gaussian elimination with partial pivoting,
// unit diagonal in L.
//
// xGETRF multiplies by reciprocals of pivots. The reciprocal of a pivot below 2^-1024 (float32:
// 2^-128) overflows, and the factor then contains Inf or NaN, which InspectFactor detects.
// Equilibration prevents this.
//
// Factorizations that can take a second on a slow core (from order 1954 on; complex: 1231) run
// panel by panel: xGETRF for panels, BLAS for products. Between panels and strips, they can be
// stopped and other jobs' work can run. Smaller factorizations run to completion.
std::unique_ptr<LuAlgorithm> MakeGetrf(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_GETRF_GETRF_H_
