// The triangular solvers of the host device, in all four types.
#ifndef CROUT_KERNELS_HOST_SOLVE_SOLVERS_H_
#define CROUT_KERNELS_HOST_SOLVE_SOLVERS_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// "getrs": OpenBLAS's xGETRS; unit diagonal in L.
std::unique_ptr<TriangularSolver> MakeGetrs(Executor& executor);

// "trsm": row interchanges and two calls of BLAS xTRSM; either unit diagonal.
std::unique_ptr<TriangularSolver> MakeTrsm(Executor& executor);

// "ss": sequential forward and backward substitution, the reference; either unit diagonal. One
// core.
std::unique_ptr<TriangularSolver> MakeSs(Executor& executor);

// "is": iterative substitution after Cejka (2023), Jacobi's sweeps on each triangle from the
// right-hand side scaled by the diagonal, until no element changes by more than the tolerance (of
// complex numbers |Re| + |Im|, Abs1); either unit diagonal. The iteration's matrix is nilpotent: at
// most n sweeps of each triangle, after which the result is that of substitution. NaN never passes
// for converged.
std::unique_ptr<TriangularSolver> MakeIs(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_SOLVE_SOLVERS_H_
