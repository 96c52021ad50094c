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

// Where an n x n matrix has nonzeros, on a grid of `cells` x `cells` or n x n if that is coarser:
// a string for each row of cells, with a digit for each cell. 0: no nonzero; 1 to 9: its share of
// nonzeros, rounded up to ninths.
std::vector<std::string> CoarsePattern(const std::vector<double>& a, int64_t n, DType dtype,
                                       int64_t cells);

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_ACCURACY_H_
