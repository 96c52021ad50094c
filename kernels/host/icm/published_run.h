// SPDX-License-Identifier: Apache-2.0

// The iterative Crout method on the host as published (MethodVariant::kPublished).
#ifndef CROUT_KERNELS_HOST_ICM_PUBLISHED_RUN_H_
#define CROUT_KERNELS_HOST_ICM_PUBLISHED_RUN_H_

#include <cstdint>
#include <vector>

#include "kernels/execution_context.h"
#include "kernels/icm/run_record.h"
#include "kernels/icm/tolerances.h"
#include "kernels/matrix.h"
#include "kernels/stop_requested.h"

namespace crout::host {

// Memory for a run.
template <class T>
struct PublishedBuffers {
  MatrixView<T> lu;     // n x n: on entry the estimate, on exit L and U
  MatrixView<T> a;      // n x n: on entry A in the estimate's row order; rows follow the pivots
  MatrixView<T> sums;   // n x n: zero on entry
  MatrixView<T> next;   // size x size
  T* strips = nullptr;  // size elements per core
};

template <class T>
struct PublishedOptions {
  PivotCriterion criterion;  // not the threshold rule
  Tolerances<RealPart<T>> tolerances;
  int64_t sweep_limit = 0;
  int cores = 1;
};

// Runs the method of L. M. Cejka, Parallel Computation of LU Decomposition on GPUs (CTU in Prague,
// 2023), section 2.2.2. For each diagonal section in turn:
//
//   1. Sweep the section until no element changes by more than the tolerance. Search for the first
//      bad element l_bb at or after `start`, before the first sweep and after each one. Sweeps
//      leave out elements with row >= b and column > b.
//   2. Sweep the sections below it in the columns up to b, each until it has converged.
//   3. If there is a bad element, exchange its row with the row of the largest candidate. If the
//      new pivot is also bad, move `start` past it. Repeat from 1 unless the pivot was the
//      section's last.
//   4. Sweep the sections right of it, each until it has converged.
//
// A sweep is synchronous. It evaluates every element from the previous iterates:
//   l_ij = a_ij - s_ij,   u_ij = (a_ij - s_ij) / l_ii,   s_ij = sum_{k < min(i, j)} l_ik u_kj
// The sum runs in ascending order of k with fused multiply-add.
//
// Sweep counts and results equal those of that definition, bit for bit, with less arithmetic.
// Products of elements whose bits can no longer change are added to `sums` once. Those elements are
// not recomputed.
//
// A NaN change counts as no change, as in the source, so a section with NaN elements converges. The
// run then ends with RunOutcome::kNotFinite, even if more sweeps would have made the elements
// finite.
//
// Returns LAPACK's info: k + 1 if all candidates of column k are zero. `permutation` and `record`
// are as for IcmRun.
template <class T>
int64_t RunPublished(const PublishedBuffers<T>& buffers, std::vector<int64_t>& permutation,
                     const PublishedOptions<T>& options, DeviceReport& report, StopRequested stop,
                     RunRecord& record);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_ICM_PUBLISHED_RUN_H_
