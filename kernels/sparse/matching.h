// Weighted matching of rows and columns, and the scaling that comes with it.
#ifndef CROUT_KERNELS_SPARSE_MATCHING_H_
#define CROUT_KERNELS_SPARSE_MATCHING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/sparse_view.h"
#include "kernels/stop_requested.h"

namespace crout {

struct Matching {
  // Row i goes with column column_of_row[i]: the product of |a(i, column_of_row[i])| is the largest
  // of all permutations. -1 of rows without a column where the matrix is structurally singular; the
  // number of the others is then as large as it can be.
  std::vector<int32_t> column_of_row;
  // Of diag(row_scale) |A| diag(column_scale) no entry is above 1, and those of the matching are 1,
  // up to rounding. Powers of e, finite and > 0. Empty where structurally singular.
  std::vector<double> row_scale;
  std::vector<double> column_scale;
  int64_t unmatched_row = -1;  // the first of them; -1: none
};

// The matching of the largest product (Duff and Koster, SIAM J. Matrix Anal. Appl. 22, 2001: MC64's
// job 5), by shortest augmenting paths. Zeros that are stored are no entries. Asks `stop` now and
// then. INVALID_ARGUMENT: an entry that is NaN or Inf, with its place.
absl::StatusOr<Matching> MaximumProductMatching(const AnySparse& a, StopRequested stop);

// What it takes of each entry: its cost, and a place in the queue of those that wait.
inline size_t MatchingBytes(int64_t nonzeros) { return static_cast<size_t>(nonzeros) * 24; }

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_MATCHING_H_
