// An analysis with other positions in its fronts.
#ifndef CROUT_KERNELS_SPARSE_REGROUP_H_
#define CROUT_KERNELS_SPARSE_REGROUP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/sparse/analysis.h"

namespace crout {

// The matrix' rows and columns in a new order of elimination, and how many of them each front of
// the old analysis eliminates: some number, which may be 0. The last front has as many as before
// where unknowns are kept.
struct Regrouping {
  std::vector<int32_t> rows;
  std::vector<int32_t> columns;
  std::vector<int32_t> eliminated;
};

// The same tree, pattern and scales, without fronts that eliminate nothing. `a` is the matrix that
// was analysed. Errors and `claim` are as Analyze's.
absl::StatusOr<Analysis> Regroup(const Analysis& analysis, const AnySparse& a,
                                 Regrouping&& regrouping, const AnalysisOptions& options,
                                 StopRequested stop);

// INVALID_ARGUMENT unless `a` has the order, number of entries and pattern that were analysed, and
// is not structurally singular.
absl::Status CheckAnalysed(const Analysis& analysis, const AnySparse& a, StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_REGROUP_H_
