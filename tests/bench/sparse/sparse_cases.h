// SPDX-License-Identifier: Apache-2.0

// Backward errors of sparse systems, for benchmarks.
#ifndef CROUT_TESTS_BENCH_SPARSE_SPARSE_CASES_H_
#define CROUT_TESTS_BENCH_SPARSE_SPARSE_CASES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/sparse_view.h"

namespace crout {

// Returns the backward error |b - A x| / (|A| |x| + |b|) in infinity norms, for one right-hand
// side. `x` and `b` have n elements.
inline double BackwardError(const SparseView<double>& a, const std::vector<double>& x,
                            const std::vector<double>& b) {
  double residual = 0, norm_a = 0, norm_x = 0, norm_b = 0;
  for (int64_t i = 0; i < a.n; ++i) {
    double sum = b[i], row = 0;
    a.ForRow(Op::kNone, i, [&](int32_t k, double v) {
      sum -= v * x[k];
      row += std::abs(v);
    });
    residual = std::max(residual, std::abs(sum));
    norm_a = std::max(norm_a, row);
    norm_x = std::max(norm_x, std::abs(x[i]));
    norm_b = std::max(norm_b, std::abs(b[i]));
  }
  return residual / (norm_a * norm_x + norm_b);
}

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SPARSE_SPARSE_CASES_H_
