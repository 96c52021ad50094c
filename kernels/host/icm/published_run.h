// The iterative Crout method on the host as published, MethodVariant::kPublished.
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

// Memory of a run.
template <class T>
struct PublishedBuffers {
  MatrixView<T> lu;     // n x n: on entry the estimate, on exit L and U
  MatrixView<T> a;      // n x n: on entry A, its rows in the estimate's order; follows the pivots
  MatrixView<T> sums;   // n x n: on entry zero
  MatrixView<T> next;   // size x size
  T* strips = nullptr;  // size elements for each core
};

template <class T>
struct PublishedOptions {
  PivotCriterion criterion;  // not by threshold
  Tolerances<RealPart<T>> tolerances;
  int64_t sweep_limit = 0;
  int cores = 1;
};

// L. M. Cejka, Parallel Computation of LU Decomposition on GPUs (CTU in Prague, 2023),
// section 2.2.2. For each diagonal section in turn:
//   1. Sweep it until no element changes by more than the tolerance. Before the first sweep and
//      after each the first bad element l_bb is looked for, from `start` on; the sweeps leave out
//      elements with row >= b and column > b.
//   2. Sweep the sections below it likewise, each to its own end, in the columns up to b.
//   3. If there is a bad element, bring the largest candidate of its column into its row. If it is
//      bad all the same, `start` moves past it. Go on from 1, unless it was the section's last.
//   4. Sweep the sections right of it, each to its own end.
// A sweep is synchronous: every element by its formula
//   l_ij = a_ij - s_ij,   u_ij = (a_ij - s_ij) / l_ii,   s_ij = sum_{k < min(i, j)} l_ik u_kj
// with the iterates before it on the right, and the sum in ascending order by fused multiply-add.
//
// The numbers of sweeps and the results, to the bit, are those of that definition. Not all of its
// arithmetic is done, though: products of elements whose bits no sweep can change any more are
// added to `sums` once, and such elements are not computed again.
//
// As there, a change that is NaN counts as none: a section with such elements is at its end. That
// ends the run here, RunOutcome::kNotFinite, even where more sweeps would have made them finite.
//
// Returns LAPACK's info, k + 1 where all candidates of column k are zero. `permutation` and
// `record` as in IcmRun.
template <class T>
int64_t RunPublished(const PublishedBuffers<T>& buffers, std::vector<int64_t>& permutation,
                     const PublishedOptions<T>& options, DeviceReport& report, StopRequested stop,
                     RunRecord& record);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_ICM_PUBLISHED_RUN_H_
