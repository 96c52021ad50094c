// SPDX-License-Identifier: Apache-2.0

// Checks and results common to numeric factorizations of sparse matrices on any device, and the
// summary of multifrontal ones.
#ifndef CROUT_KERNELS_SPARSE_NUMERIC_FINDINGS_H_
#define CROUT_KERNELS_SPARSE_NUMERIC_FINDINGS_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/scalar.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse/multifrontal_factor.h"

namespace crout {

// True if the permutation that takes rows[k] to columns[k] is odd. It gives the sign of the
// determinant. Both arguments hold 0 to n - 1.
inline bool IsOdd(std::span<const int32_t> rows, std::span<const int32_t> columns) {
  std::vector<int32_t> column_of_row(rows.size());
  for (size_t k = 0; k < rows.size(); ++k) column_of_row[rows[k]] = columns[k];
  std::vector<bool> seen(rows.size());
  bool odd = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (seen[i]) continue;
    int64_t length = 0;
    for (auto k = static_cast<int32_t>(i); !seen[k]; k = column_of_row[k]) {
      seen[k] = true;
      ++length;
    }
    if (length % 2 == 0) odd = !odd;
  }
  return odd;
}

struct NumericFindings {
  int64_t info = 0;  // defined as in NumericSummary, like the next two
  int64_t perturbed = 0;
  int64_t interchanges = 0;
  int64_t negative = 0;  // negative pivots; real matrices only
  double max_abs = 0;    // largest entry of B
  double largest = 0;    // largest entry of U
  bool finite = true;    // true if L and U are finite
};

// INVALID_ARGUMENT unless `a` matches the analysis and `dtype` is a valid type for its factor.
absl::Status CheckFits(const Analysis& analysis, const AnySparse& a, DType dtype);

// Converts findings to a summary. symmetric() returns whether A is symmetric; it is called only if
// needed.
template <class Symmetric>
NumericSummary Summarize(const Analysis& analysis, const NumericFindings& found, DType dtype,
                         Symmetric symmetric) {
  NumericSummary summary;
  summary.info = found.info;
  if (found.info > 0) summary.singular_column = analysis.column_order[found.info - 1];
  summary.perturbed_pivots = found.perturbed;
  summary.interchanges = found.interchanges;
  summary.max_abs = found.max_abs;
  if (!found.finite) {
    summary.pivot_growth = std::numeric_limits<double>::infinity();
  } else if (found.max_abs > 0) {
    summary.pivot_growth = found.largest / found.max_abs;
  } else {
    summary.pivot_growth = found.largest == 0 ? 1 : std::numeric_limits<double>::infinity();
  }
  if (!IsComplex(dtype) && analysis.row_order == analysis.column_order && found.perturbed == 0 &&
      found.interchanges == 0 && symmetric()) {
    summary.negative_pivots = found.negative;
  }
  return summary;
}

// Determinant of A from the diagonal of U by position and the n interchanges at
// MultifrontalLayout::pivots.
template <class T>
LogDeterminant DeterminantOf(const Analysis& analysis, const NumericSummary& summary,
                             const T* diagonal, const int32_t* interchanges) {
  if (summary.info > 0) return {0, -std::numeric_limits<double>::infinity()};
  LogDeterminant det;
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    const int32_t first = analysis.first_position[f];
    for (int32_t k = first; k < analysis.first_position[f + 1]; ++k) {
      const auto u = ToFloat64(diagonal[k]);
      const double modulus = Modulus(u);
      det.log_abs += std::log(modulus);
      det.sign *= std::complex<double>(u) / modulus;
      if (interchanges[k] != k - first) det.sign = -det.sign;
    }
  }
  if (IsOdd(analysis.row_order, analysis.column_order)) det.sign = -det.sign;
  for (const double scale : analysis.row_scale) det.log_abs -= std::log(scale);
  for (const double scale : analysis.column_scale) det.log_abs -= std::log(scale);
  return det;
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_NUMERIC_FINDINGS_H_
