// SPDX-License-Identifier: Apache-2.0

// Delayed pivots: a trial factorization, which stores no factor, determines which front eliminates
// each row and column.
#ifndef CROUT_KERNELS_SPARSE_DELAYED_PIVOTS_H_
#define CROUT_KERNELS_SPARSE_DELAYED_PIVOTS_H_

#include "absl/status/statusor.h"
#include "kernels/sparse/analysis.h"

namespace crout {

// Returns an analysis for the values of `a` in which every front has acceptable pivots. Fronts are
// eliminated in float64 or complex128 with threshold pivoting (sparse/pivot_search.h). Rows and
// columns without an acceptable pivot move to the parent's front, repeatedly if needed; in the root
// they stay. Nothing moves into the front of kept unknowns. The scales are unchanged.
//
// Columns of a front are in the order of their elimination. A factorization in `dtype` that takes
// the largest candidate of each column therefore makes the same choices.
//
// Runs on the calling thread. Needs about as many operations as the numeric factorization, and the
// memory of its contributions. Errors, `claim` and `stop` are as for Analyze. Also
// RESOURCE_EXHAUSTED if the factor would have more than kMaxDelayedFill times as many entries.
absl::StatusOr<Analysis> DelayPivots(const Analysis& analysis, const AnySparse& a, DType dtype,
                                     const AnalysisOptions& options, StopRequested stop);

inline constexpr double kMaxDelayedFill = 16;

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_DELAYED_PIVOTS_H_
