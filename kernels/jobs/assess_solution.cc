// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/assess_solution.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/scalar.h"

namespace crout {

double LargestOnHost(const PackedMatrix& matrix) {
  return DispatchDType(matrix.dtype, [&](auto tag) -> double {
    using T = typename decltype(tag)::type;
    using Part = RealPart<T>;
    const auto* const parts = reinterpret_cast<const Part*>(matrix.data);
    const int64_t count =
        matrix.rows * matrix.cols * static_cast<int64_t>(sizeof(T) / sizeof(Part));
    Part largest = 0;
    Part bad = 0;  // becomes NaN if there is an Inf or NaN, otherwise remains 0
    for (int64_t i = 0; i < count; ++i) {
      largest = std::abs(parts[i]) > largest ? std::abs(parts[i]) : largest;
      bad += parts[i] * Part{0};
    }
    return std::isnan(bad) ? std::numeric_limits<double>::quiet_NaN() : largest;
  });
}

AccuracyWarnings AssessSolution(const FactorSummary* factor, const SolveFigures& figures,
                                const PackedMatrix& x) {
  const double x_max = LargestOnHost(x);
  AccuracyWarnings accuracy_warnings;
  accuracy_warnings.inaccurate = !figures.finite || !std::isfinite(x_max);
  if (figures.backward_error) {
    accuracy_warnings.inaccurate |= !IsAccepted(*figures.backward_error, figures.accepted);
  } else if (factor != nullptr) {
    accuracy_warnings.growth = factor->is_poor();
  }
  if (factor != nullptr) accuracy_warnings.nearly_singular = factor->is_nearly_singular();
  // With scales, the norms of A, X and B reflect the scales rather than conditioning.
  const bool scaled =
      factor != nullptr && (factor->row_scaled || factor->col_scaled || factor->sparse);
  if (!scaled && x_max > 0 && figures.matrix_norm > 0 && std::isfinite(figures.matrix_norm)) {
    // Divides first, because the product may overflow.
    const double amplification = x_max / figures.rhs_max_abs * figures.matrix_norm;
    const DType reached = factor != nullptr ? factor->reached_dtype() : x.dtype;
    accuracy_warnings.nearly_singular |= IsNearlySingular(amplification, reached, x.rows);
  }
  return accuracy_warnings;
}

}  // namespace crout
