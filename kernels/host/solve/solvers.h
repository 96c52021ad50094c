// SPDX-License-Identifier: Apache-2.0

// Triangular solvers of the host device, for all four types.
#ifndef CROUT_KERNELS_HOST_SOLVE_SOLVERS_H_
#define CROUT_KERNELS_HOST_SOLVE_SOLVERS_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// "getrs": OpenBLAS's xGETRS. Unit diagonal in L.
std::unique_ptr<TriangularSolver> MakeGetrs(Executor& executor);

// "trsm": row interchanges and two calls of BLAS xTRSM. Unit diagonal in L or U.
std::unique_ptr<TriangularSolver> MakeTrsm(Executor& executor);

// "ss": sequential forward and backward substitution, the reference. Unit diagonal in L or U. Uses
// one core.
std::unique_ptr<TriangularSolver> MakeSs(Executor& executor);

// "is": iterative substitution (Cejka 2023). Unit diagonal in L or U. Applies Jacobi sweeps to each
// triangle, starting from the right-hand side divided by the diagonal, until no element changes by
// more than the tolerance (|Re| + |Im| for complex numbers, Abs1). NaN never counts as converged.
// The iteration matrix is nilpotent: after at most n sweeps per triangle the result is that of
// substitution.
std::unique_ptr<TriangularSolver> MakeIs(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_SOLVE_SOLVERS_H_
