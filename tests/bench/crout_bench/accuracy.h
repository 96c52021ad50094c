// How good a factor or a solution is, computed from what came out alone. In float64 by matrix
// products of the host's BLAS: tests/support/ratios.h is the slow oracle that it is tested against.
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
  double max_abs_diff = 0;  // max |PA - LU|: what the thesis reports as max |A - LUP|
};

// All n x n, column-major, float64 or, where `dtype` is complex, the parts of complex numbers; lu
// in getrf's storage, ipiv 1-based. `a` as it was factored, in its precision. NaN where a factor
// holds one. Needs 3 n x n of memory beside its arguments.
FactorAccuracy MeasureFactor(const std::vector<double>& a, const std::vector<double>& lu,
                             const std::vector<int64_t>& ipiv, int64_t n,
                             UnitDiagonal unit_diagonal, DType dtype);

// max over columns of |b - A x|_inf / (|A|_inf |x|_inf + |b|_inf). a: n x n; x, b: n x nrhs, |z|
// the modulus.
double BackwardError(const std::vector<double>& a, const std::vector<double>& x,
                     const std::vector<double>& b, int64_t n, int64_t nrhs, DType dtype);

// max |L U X - B| for B of ones: what the thesis reports of solvers as max |L U P X - B|. lu: n x
// n, in getrf's storage; x: n x nrhs, with row i of the permuted B for row i of L. In float64. NaN
// where x holds one.
double SolveDifference(const std::vector<double>& lu, const std::vector<double>& x, int64_t n,
                       int64_t nrhs, UnitDiagonal unit_diagonal, DType dtype);

// The magnitudes of an n x n matrix on a grid of `cells` x `cells`, or n x n if that is coarser.
struct MagnitudePattern {
  // A string for each row of cells, with a character for each cell, of the largest |z| in it: '.'
  // where all is zero, '!' where something is not finite, else 'a' to 'z' in equal steps of its
  // logarithm from `low` to `high`.
  std::vector<std::string> rows;
  double low = 0;  // decimal logarithms, of the cells' smallest and largest; 0 where all is zero
  double high = 0;
};
MagnitudePattern CoarsePattern(const std::vector<double>& a, int64_t n, DType dtype, int64_t cells);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_ACCURACY_H_
