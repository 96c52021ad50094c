// SPDX-License-Identifier: Apache-2.0

// Weighted matching of rows and columns, and the resulting scales.
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
  // Row i is matched with column column_of_row[i]. The product of |a(i, column_of_row[i])| is the
  // largest over all permutations. If the matrix is structurally singular, unmatched rows have -1
  // and the number of matched rows is maximal.
  std::vector<int32_t> column_of_row;
  // Entries of diag(row_scale) |A| diag(column_scale) are at most 1, and those of the matching are
  // 1, up to rounding. The scales are finite and > 0. Empty if the matrix is structurally singular.
  std::vector<double> row_scale;
  std::vector<double> column_scale;
  int64_t unmatched_row = -1;  // first unmatched row; -1: none
};

// Computes the matching of largest product by shortest augmenting paths (Duff and Koster, SIAM J.
// Matrix Anal. Appl. 22, 2001: job 5 of MC64). Stored zeros are not entries. Calls `stop`
// regularly. INVALID_ARGUMENT, with the position, if an entry is NaN or Inf.
absl::StatusOr<Matching> MaximumProductMatching(const AnySparse& a, StopRequested stop);

// Memory, in bytes, that the matching needs for the entries: for each its cost and a place in the
// heap.
inline size_t MatchingBytes(int64_t nonzeros) { return static_cast<size_t>(nonzeros) * 24; }

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_MATCHING_H_
