// The iterative Crout method on the host: the oracle for device versions.
#ifndef CROUT_KERNELS_HOST_ICM_ICM_H_
#define CROUT_KERNELS_HOST_ICM_ICM_H_

#include <memory>

#include "kernels/host/device/executor.h"
#include "kernels/lu_algorithm.h"

namespace crout::host {

// Unit diagonal in U, after L. M. Cejka, Parallel Computation of LU Decomposition on GPUs (CTU in
// Prague, 2023). L and U are the fixed point of
//   l_ij = a_ij - sum_{k<j} l_ik u_kj            i >= j
//   u_ij = (a_ij - sum_{k<i} l_ik u_kj) / l_ii   i < j
// found by synchronous sweeps (Jacobi's), square section by section: the diagonal one, then those
// below, then those to the right, side by side. The start is A itself, or LuParameters::start with
// its row order. Products with final sections are taken from A once, by BLAS.
//
// Where pivoting: the first bad l_bb of a section masks what is beyond its row and column until it
// has converged and rows are exchanged. An element counts as converged when it changes by no more
// than its tolerances allow (tolerances.h), with all elements that it depends on; Inf and NaN never
// do, and are an error only where all that they depend on is final. Pivots and changes of complex
// numbers are measured by |Re| + |Im| (Abs1). A section that no pivot
// interrupts takes at most 2 s sweeps with tolerance 0 (s: its order), 2 s + p - 1 with p pivots if
// it is dense and the first.
//
// The threshold rule judges a pivot by the candidates within the section while that is swept, and
// again by the whole column once the sections below have converged.
//
// MethodVariant::kPublished runs the method as its source defines it instead, in sections of the
// published size unless told otherwise, "icmpp" by the interval rule, also from a start
// (published_run.h). It takes no threshold rule, and n x n elements of workspace more.
//
// Finish: ABORTED at the sweep limit (default: SweepBound(), which tolerance 0 does not reach);
// INVALID_ARGUMENT with the position of a final element that is not finite. A singular matrix ends
// the run: info names the first l_kk that is zero with all candidates, and columns beyond are
// unfinished.

// "icm": never pivots.
std::unique_ptr<LuAlgorithm> MakeIcm(Executor& executor);

// "icmpp": partial pivoting, or from a start the threshold rule with 0.1, unless
// LuParameters::pivoting says otherwise.
std::unique_ptr<LuAlgorithm> MakeIcmpp(Executor& executor);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_ICM_ICM_H_
