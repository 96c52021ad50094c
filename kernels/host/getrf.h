// LAPACK's LU factorization on the host.
#ifndef CROUT_KERNELS_HOST_GETRF_H_
#define CROUT_KERNELS_HOST_GETRF_H_

#include <memory>

#include "kernels/host/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout {

// "getrf": OpenBLAS's xGETRF, right-looking recursive Gaussian elimination with partial pivoting,
// unit diagonal in L.
std::unique_ptr<LuAlgorithm> MakeHostGetrf(HostExecutor& executor);

}  // namespace crout

#endif  // CROUT_KERNELS_HOST_GETRF_H_
