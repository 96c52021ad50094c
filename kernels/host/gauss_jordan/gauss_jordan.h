// Gauss-Jordan elimination on the host.
#ifndef CROUT_KERNELS_HOST_GAUSS_JORDAN_GAUSS_JORDAN_H_
#define CROUT_KERNELS_HOST_GAUSS_JORDAN_GAUSS_JORDAN_H_

#include <memory>

#include "kernels/direct_solver.h"
#include "kernels/host/device/executor.h"

namespace crout::host {

// "gauss_jordan": reduces [A B] to reduced row echelon form [I X] by stripes of columns that
// threads work on independently (G. Carcenac; E. Eyvazov, Gauss-Jordan Solver of Linear Equation
// Systems on GPU, CTU 2021), in blocks of pivot columns with partial pivoting. A block's columns
// are eliminated as in LU, then every stripe exchanges its rows, solves for the block's rows and
// subtracts their products from the rows above and below. The stripes' bounds do not depend on the
// number of threads, nor do the bits.
std::unique_ptr<DirectSolver> MakeGaussJordan(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_GAUSS_JORDAN_GAUSS_JORDAN_H_
