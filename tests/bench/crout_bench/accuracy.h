// SPDX-License-Identifier: Apache-2.0

// Accuracy of factors and solutions, computed from the results alone. Uses float64 and the host's
// BLAS; it is tested against the slow oracle in tests/support/ratios.h.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_ACCURACY_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_ACCURACY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/lu_parameters.h"

namespace crout::bench {

struct FactorAccuracy {
  double ratio = 0;         // |PA - LU|_1 / (n |A|_1 eps): LAPACK's GET01, accepted below 30
  double max_abs_diff = 0;  // max |PA - LU|, which the thesis reports as max |A - LUP|
};

// Measures a factor. All matrices are n x n and column-major, in float64; if `dtype` is complex,
// each element has two parts. `a` is the matrix as it was factored, rounded to that precision; `lu`
// is in getrf's storage; `ipiv` is 1-based. Results are NaN if the factor contains a NaN. Needs
// memory for three more n x n matrices.
FactorAccuracy MeasureFactor(const std::vector<double>& a, const std::vector<double>& lu,
                             const std::vector<int64_t>& ipiv, int64_t n,
                             UnitDiagonal unit_diagonal, DType dtype);

// Returns the maximum over columns of |b - A x|_inf / (|A|_inf |x|_inf + |b|_inf), where |z| is the
// modulus. a: n x n; x, b: n x nrhs.
double BackwardError(const std::vector<double>& a, const std::vector<double>& x,
                     const std::vector<double>& b, int64_t n, int64_t nrhs, DType dtype);

// Returns max |L U X - B| for B of ones, which the thesis reports for solvers as max |L U P X - B|.
// lu: n x n, in getrf's storage. x: n x nrhs; row i of the permuted B belongs to row i of L.
// Computed in float64. NaN if x contains a NaN.
double SolveDifference(const std::vector<double>& lu, const std::vector<double>& x, int64_t n,
                       int64_t nrhs, UnitDiagonal unit_diagonal, DType dtype);

// The magnitudes of an n x n matrix on a grid of `cells` x `cells`, or of n x n if n is smaller.
struct MagnitudePattern {
  // One string per row of cells, one character per cell for the largest |z| in it: '.' if all are
  // zero, '!' if one is not finite, otherwise 'a' to 'z' in equal steps of the logarithm from `low`
  // to `high`.
  std::vector<std::string> rows;
  double low = 0;  // decimal logarithms of the smallest and the largest cell; 0 if all are zero
  double high = 0;
};
MagnitudePattern CoarsePattern(const std::vector<double>& a, int64_t n, DType dtype, int64_t cells);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_ACCURACY_H_
