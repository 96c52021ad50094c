// The triangular solvers of the host device.
#ifndef CROUT_KERNELS_HOST_SOLVERS_H_
#define CROUT_KERNELS_HOST_SOLVERS_H_

#include <memory>

#include "kernels/host/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout {

// "getrs": OpenBLAS's xGETRS; unit diagonal in L.
std::unique_ptr<TriangularSolver> MakeHostGetrs(HostExecutor& executor);

// "trsm": row interchanges and two calls of BLAS xTRSM; either unit diagonal.
std::unique_ptr<TriangularSolver> MakeHostTrsm(HostExecutor& executor);

// "ss": sequential forward and backward substitution, the reference; either unit diagonal. One
// core.
std::unique_ptr<TriangularSolver> MakeHostSs(HostExecutor& executor);

}  // namespace crout

#endif  // CROUT_KERNELS_HOST_SOLVERS_H_
