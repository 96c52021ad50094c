// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/factor_download.h"

#include <algorithm>
#include <limits>

namespace crout {

absl::StatusOr<SparseDownloadLayout> SparseDownloadLayout::For(const Analysis& analysis,
                                                               const NumericSummary& numeric,
                                                               DType dtype) {
  const int64_t n = analysis.n;
  SparseDownloadLayout layout;
  layout.lower_entries = (analysis.factor_entries() - n) / 2;
  layout.upper_entries = (analysis.factor_entries() + n) / 2;
  if (numeric.counts) {
    layout.lower_entries = numeric.counts->lower;
    layout.upper_entries = numeric.counts->upper;
  }
  if (layout.lower_entries + layout.upper_entries > std::numeric_limits<int64_t>::max() / 64) {
    return absl::InvalidArgumentError("the factor is too large to download");
  }
  const int64_t most = std::max(layout.lower_entries, layout.upper_entries);
  if (most > std::numeric_limits<int32_t>::max()) layout.index_bytes = 8;
  layout.scaled = !analysis.row_scale.empty();
  // Cannot overflow: the factor has at most 2^62 bytes, and its indices take no more than its
  // values.
  const auto bytes = [&](int64_t entries) {
    return (n + 1 + entries) * layout.index_bytes + entries * SizeOf(dtype);
  };
  layout.upper = bytes(layout.lower_entries);
  layout.permutations = layout.upper + bytes(layout.upper_entries);
  layout.scales = layout.permutations + 2 * n * sizeof(int32_t);
  layout.bytes = layout.scales + (layout.scaled ? 2 * n * sizeof(double) : 0);
  return layout;
}

}  // namespace crout
