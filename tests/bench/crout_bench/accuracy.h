// SPDX-License-Identifier: Apache-2.0

// Accuracy of factors and solutions, computed from the matrix and the results. Uses float64 and the
// host's BLAS. Matrices are column-major and in float64; if `dtype` is complex, elements have
// interleaved real and imaginary parts, and |z| is the modulus.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_ACCURACY_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_ACCURACY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/lu_parameters.h"

namespace crout::bench {

struct FactorAccuracy {
  double ratio = 0;         // |PA - LU|_1 / (n |A|_1 eps), as LAPACK's GET01; accepted below 30
  double max_abs_diff = 0;  // max |PA - LU|, max |A - LUP| in the thesis
};

// Measures a factor. `a` (n x n) is the factored matrix, rounded to `dtype`. `lu` (n x n) has L and
// U as stored by getrf. `ipiv` is 1-based. eps is the unit roundoff of `dtype`. The results are NaN
// if the factor contains a NaN. Needs memory for three more n x n matrices.
FactorAccuracy MeasureFactor(const std::vector<double>& a, const std::vector<double>& lu,
                             const std::vector<int64_t>& ipiv, int64_t n,
                             UnitDiagonal unit_diagonal, DType dtype);

// Returns the maximum over the columns of |b - A x|_inf / (|A|_inf |x|_inf + |b|_inf). `a` is n x
// n; `x` and `b` are n x nrhs.
double BackwardError(const std::vector<double>& a, const std::vector<double>& x,
                     const std::vector<double>& b, int64_t n, int64_t nrhs, DType dtype);

// Returns max |L U X - B| for B of ones, max |L U P X - B| in the thesis. `lu` (n x n) has L and U
// as stored by getrf; `x` is n x nrhs. B is the same after any interchanges. NaN if `x` contains a
// NaN.
double SolveDifference(const std::vector<double>& lu, const std::vector<double>& x, int64_t n,
                       int64_t nrhs, UnitDiagonal unit_diagonal, DType dtype);

// The magnitudes of an n x n matrix on a grid of cells.
struct MagnitudePattern {
  // One string per row of cells, with one character per cell for its largest |z|: '.' for zero, '!'
  // if an element is not finite, otherwise 'a' to 'z' in equal steps of the logarithm from `low` to
  // `high`.
  std::vector<std::string> rows;
  double low = 0;  // decimal logarithms of the smallest and largest cell; 0 if all are zero
  double high = 0;
};
// Returns the pattern of `a` (n x n). The grid is cells x cells, or n x n if n is smaller.
MagnitudePattern CoarsePattern(const std::vector<double>& a, int64_t n, DType dtype, int64_t cells);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_ACCURACY_H_
