// LAPACK's LU factorization on the host.
#ifndef CROUT_KERNELS_HOST_GETRF_GETRF_H_
#define CROUT_KERNELS_HOST_GETRF_GETRF_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// "getrf": OpenBLAS's xGETRF, right-looking recursive Gaussian elimination with partial pivoting,
// unit diagonal in L. It scales by reciprocals of pivots: one below 2^-1024 (float32: 2^-128)
// overflows, and the factor holds Inf or NaN, which InspectFactor finds. Equilibration avoids it.
// From order 4096 on it runs panel by panel, with xGETRF's panels and BLAS's products, and can be
// stopped in between; smaller ones run to their end.
std::unique_ptr<LuAlgorithm> MakeGetrf(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_GETRF_GETRF_H_
