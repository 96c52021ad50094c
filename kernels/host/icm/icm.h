// SPDX-License-Identifier: Apache-2.0

// The iterative Crout method on the host, the reference for the device versions.
#ifndef CROUT_KERNELS_HOST_ICM_ICM_H_
#define CROUT_KERNELS_HOST_ICM_ICM_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

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
// than the tolerances allow (tolerances.h). Inf and NaN never count as converged; they are an error
// only when all elements they depend on are final. Pivots and changes of complex numbers are
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

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_ICM_ICM_H_
