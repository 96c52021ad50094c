// SPDX-License-Identifier: Apache-2.0

// Moves positions between the fronts of an analysis.
#ifndef CROUT_KERNELS_SPARSE_REGROUP_H_
#define CROUT_KERNELS_SPARSE_REGROUP_H_

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

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_REGROUP_H_
