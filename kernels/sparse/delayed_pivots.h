// Delayed pivots: which front eliminates which row and column, found by a factorization that keeps
// no factor.
#ifndef CROUT_KERNELS_SPARSE_DELAYED_PIVOTS_H_
#define CROUT_KERNELS_SPARSE_DELAYED_PIVOTS_H_

#include "absl/status/statusor.h"
#include "kernels/sparse/analysis.h"

namespace crout {

// The analysis for these values of `a` in which every front has acceptable pivots. Fronts are
// eliminated in float64 or complex128 with threshold pivoting (sparse/pivot_search.h). Rows and
// columns without an acceptable pivot move to the parent's front, and so on; what the root has no
// acceptable pivot for stays there. Columns of one front are in the order of their elimination, so
// that a factorization in `dtype` that takes the largest candidate of each column makes the same
// choices. The scales stay. Positions do not move into the front of kept unknowns.
//
// Takes about as many operations as the numeric factorization, on the calling thread, and the
// memory of its contributions. Errors, `claim` and `stop` are as Analyze's; RESOURCE_EXHAUSTED also
// where the factor would have more than kMostDelayedFill times as many entries.
absl::StatusOr<Analysis> DelayPivots(const Analysis& analysis, const AnySparse& a, DType dtype,
                                     const AnalysisOptions& options, StopRequested stop);

inline constexpr double kMostDelayedFill = 16;

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_DELAYED_PIVOTS_H_
