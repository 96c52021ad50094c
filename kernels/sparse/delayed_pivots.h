// SPDX-License-Identifier: Apache-2.0

// Delayed pivots: moves positions between the fronts of an analysis. A trial factorization, which
// stores no factor, determines which front eliminates each row and column.
#ifndef CROUT_KERNELS_SPARSE_DELAYED_PIVOTS_H_
#define CROUT_KERNELS_SPARSE_DELAYED_PIVOTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/sparse/analysis.h"

namespace crout {

// A new elimination order of the matrix's rows and columns, and the number of positions that each
// front of the old analysis eliminates, possibly 0. If unknowns are kept, the number of the last
// front is unchanged.
struct Regrouping {
  std::vector<int32_t> rows;
  std::vector<int32_t> columns;
  std::vector<int32_t> eliminated;
};

// Returns the analysis with this order and the same tree, pattern and scales. Fronts that eliminate
// nothing are removed. `a` is the analyzed matrix. Errors and `claim` are as for Analyze.
absl::StatusOr<Analysis> Regroup(const Analysis& analysis, const AnySparse& a,
                                 Regrouping&& regrouping, const AnalysisOptions& options,
                                 StopRequested stop);

// INVALID_ARGUMENT unless `a` has the order, number of entries and pattern of the analysis, and is
// not structurally singular.
absl::Status CheckAnalysed(const Analysis& analysis, const AnySparse& a, StopRequested stop);

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
