// SPDX-License-Identifier: Apache-2.0

// Creates the methods of the host device, for its catalogue. `executor` must outlive them.
#ifndef CROUT_KERNELS_HOST_METHODS_H_
#define CROUT_KERNELS_HOST_METHODS_H_

#include <memory>

#include "kernels/batch_lu.h"
#include "kernels/direct_solver.h"
#include "kernels/echelon_reducer.h"
#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"
#include "kernels/sparse_lu.h"

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

// "block_lu": right-looking LU by square tiles without pivoting, unit diagonal in L. Source: M.
// Rodrigues and S. Estevao, LU Factorization (Porto, 2023).
//
// One OpenMP task updates one tile in one step. Depend clauses order the tasks. Priorities favor
// the critical path. MethodVariant::kPublished uses the report's priorities, which depend on the
// distance from the diagonal. LuParameters::block_size is the order of a tile: 256 by default, one
// of the two sizes that the report measured (128 and 256).
//
// Suitable for matrices that need no pivoting, such as diagonally dominant ones. Each tile sees the
// same operations in the same order for any number of threads, so the bits do not depend on it.
//
// A pivot underflows if |u_kk| (Abs1 for complex types) is below the smallest normal number. The
// factorization then stops with info = k + 1 and leaves rows and columns from k on unfinished.
// Small normal pivots are accepted and show up in the pivot growth.
std::unique_ptr<LuAlgorithm> MakeBlockLu(Executor& executor);

// "gem": right-looking Gaussian elimination with partial pivoting, unit diagonal in L, in blocks of
// columns whose updates are BLAS products. Source: Golub and Van Loan, Matrix Computations, 4th
// ed., algorithm 3.4.1.
//
// Within a block, rows are divided by the pivot rather than multiplied by its reciprocal, so
// subnormal pivots are harmless there. After a zero pivot the method continues with a zero column
// of L, and PA = LU still holds.
std::unique_ptr<LuAlgorithm> MakeGem(Executor& executor);

// Crout's method with the unit diagonal in U, in blocks of columns: one BLAS product subtracts the
// contribution of all earlier blocks. Source: L. M. Cejka, Parallel Computation of LU Decomposition
// on GPUs (CTU in Prague, 2023).
//
// For k = 0, 1, ...:
//   l_ik = a_ik - sum_{m<k} l_im u_mk            i >= k
//   if l_kk is bad: exchange rows k and p, where |l_pk| is largest over i >= k
//   u_kj = (a_kj - sum_{m<k} l_km u_mj) / l_kk   j > k
// For complex numbers |z| is |Re z| + |Im z| (Abs1), here and in the pivoting rules below.

// "cmpp": every l_kk is bad (partial pivoting), unless LuParameters::pivoting selects conditional
// pivoting by an interval or a threshold. If l_kk and all candidates are exactly zero, info names
// the column and u_kj is set to 0: such a matrix need not have a factorization with the unit
// diagonal in U.
std::unique_ptr<LuAlgorithm> MakeCmpp(Executor& executor);

// "cm": no pivoting. Stops at the first l_kk that is exactly zero, with info = k + 1. Columns after
// its block are then unchanged.
std::unique_ptr<LuAlgorithm> MakeCm(Executor& executor);

// Iterative Crout method, unit diagonal in U. Source: L. M. Cejka, Parallel Computation of LU
// Decomposition on GPUs (CTU in Prague, 2023). L and U are the fixed point of
//   l_ij = a_ij - sum_{k<j} l_ik u_kj            i >= j
//   u_ij = (a_ij - sum_{k<i} l_ik u_kj) / l_ii   i < j
// Synchronous (Jacobi) sweeps compute L and U one square section at a time: first the diagonal
// section, then the sections below it in parallel, then those to its right in parallel. The initial
// estimate is A itself, or LuParameters::start with its row order. BLAS subtracts the products with
// final sections from A once.
//
// Pivoting: the first bad l_bb of a section masks the elements beyond its row and column until the
// section has converged and rows are exchanged. The threshold rule compares a pivot with the
// candidates within the section during the sweeps. It compares again with the whole column once the
// sections below have converged.
//
// Convergence: an element has converged when it, and all elements it depends on, change by no more
// than the tolerances allow (icm/tolerances.h). Inf and NaN never count as converged; they are an
// error only when all elements they depend on are final. Pivots and changes of complex numbers are
// measured by |Re| + |Im| (Abs1).
//
// With tolerance 0 a section of order s without pivots takes at most 2 s sweeps. A dense first
// section with p pivots takes at most 2 s + p - 1.
//
// MethodVariant::kPublished runs the method exactly as its source defines it (published_run.h),
// with or without a start. It defaults to the published section size, and "icmpp" to the interval
// rule. It does not support the threshold rule and needs n x n more elements of workspace.
//
// Finish() returns ABORTED at the sweep limit (default: SweepBound(), which tolerance 0 never
// reaches). It returns INVALID_ARGUMENT with the position if a final element is not finite. A
// singular matrix ends the run: info names the first l_kk that is zero along with all candidates,
// and later columns are unfinished.

// "icm": no pivoting.
std::unique_ptr<LuAlgorithm> MakeIcm(Executor& executor);

// "icmpp": partial pivoting by default; with a start, the threshold rule with 0.1.
// LuParameters::pivoting overrides both.
std::unique_ptr<LuAlgorithm> MakeIcmpp(Executor& executor);

// "gauss_jordan": reduces [A B] to the reduced row echelon form [I X], in blocks of pivot columns
// with partial pivoting. Threads process stripes of columns independently. Sources: G. Carcenac; E.
// Eyvazov, Gauss-Jordan Solver of Linear Equation Systems on GPU (CTU, 2021).
//
// A block's columns are eliminated as in LU. Then every stripe exchanges its rows, solves for the
// block's rows and subtracts their products from the rows above and below. The bounds of the
// stripes, and so the bits, do not depend on the number of threads.
std::unique_ptr<DirectSolver> MakeGaussJordan(Executor& executor);

// Gauss-Jordan elimination by blocks of columns. Source: E. Eyvazov, Gauss-Jordan Solver of Linear
// Equation Systems on GPU (CTU, 2021); partial pivoting is added here. The bits do not depend on
// the number of threads.
std::unique_ptr<EchelonReducer> MakeEchelonReducer(Executor& executor);

// "irr_lu": LU factorization of irregular batches, and solves (irr_lu.h).
std::unique_ptr<BatchLu> MakeIrrLu(Executor& executor);

// "multifrontal": sparse LU by dense fronts along the elimination tree, with row interchanges
// inside fronts (multifrontal.h).
std::unique_ptr<SparseLu> MakeMultifrontal(Executor& executor);

// "multifrontal": solves with multifrontal factors.
std::unique_ptr<TriangularSolver> MakeMultifrontalSolver(Executor& executor);

// "klu": left-looking sparse LU on one core, for circuits and power grids (klu.h).
std::unique_ptr<SparseLu> MakeKlu(Executor& executor);

// "klu": solves with KLU factors.
std::unique_ptr<TriangularSolver> MakeKluSolver(Executor& executor);

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

#endif  // CROUT_KERNELS_HOST_METHODS_H_
