// SPDX-License-Identifier: Apache-2.0

// Gauss-Jordan elimination on the host.
#ifndef CROUT_KERNELS_HOST_GAUSS_JORDAN_GAUSS_JORDAN_H_
#define CROUT_KERNELS_HOST_GAUSS_JORDAN_GAUSS_JORDAN_H_

#include <memory>

#include "kernels/direct_solver.h"
#include "kernels/host/device/executor.h"

namespace crout::host {

// "gauss_jordan": reduces [A B] to the reduced row echelon form [I X], in blocks of pivot columns
// with partial pivoting. Threads process stripes of columns independently. Sources: G. Carcenac; E.
// Eyvazov, Gauss-Jordan Solver of Linear Equation Systems on GPU (CTU, 2021).
//
// A block's columns are eliminated as in LU. Then every stripe exchanges its rows, solves for the
// block's rows and subtracts their products from the rows above and below. The bounds of the
// stripes, and so the bits, do not depend on the number of threads.
std::unique_ptr<DirectSolver> MakeGaussJordan(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_GAUSS_JORDAN_GAUSS_JORDAN_H_
