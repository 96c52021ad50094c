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

// "is": iterative substitution after Cejka (2023), Jacobi's sweeps on each triangle from the
// right-hand side scaled by the diagonal, until no element changes by more than the tolerance;
// either unit diagonal. The iteration's matrix is nilpotent: at most n sweeps
// of each triangle, after which the result is that of substitution. NaN never passes for converged.
std::unique_ptr<TriangularSolver> MakeHostIs(HostExecutor& executor);

}  // namespace crout

#endif  // CROUT_KERNELS_HOST_SOLVERS_H_
