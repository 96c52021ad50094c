// LAPACK's acceptance ratios, computed apart from the code under test. A result is accepted where
// its ratio is below kThreshold. Matrices are column-major and packed.
#ifndef CROUT_TESTS_SUPPORT_RATIOS_H_
#define CROUT_TESTS_SUPPORT_RATIOS_H_

#include <cstdint>
#include <vector>

#include "kernels/lu_algorithm.h"
#include "kernels/matrix.h"
#include "tests/support/gallery.h"

namespace crout::testing {

inline constexpr double kThreshold = 30;

// |PA - LU|_1 / (n |A|_1 eps), eps of `dtype` (GET01). lu in getrf's storage, ipiv 1-based. The
// matrix that was factored, in the precision it was factored in. 0 for n = 0; Inf for a zero A with
// another LU, and where anything is NaN.
double FactorRatio(const HostMatrix& a, int64_t n, const HostMatrix& lu,
                   const std::vector<int64_t>& ipiv, UnitDiagonal unit_diagonal, DType dtype);

// |(PA - LU) z|_1 / (n |A|_1 eps) for a vector z of random signs, in long double: a check of the
// factor that is quadratic, for matrices of thousands. Its mean over z is at least FactorRatio /
// sqrt(2) (Khintchine), and some sqrt(n) times that where the errors of a row are independent.
double ProbedFactorRatio(const HostMatrix& a, int64_t n, const HostMatrix& lu,
                         const std::vector<int64_t>& ipiv, UnitDiagonal unit_diagonal, DType dtype);

// max over columns of |b - op(A) x|_1 / (|op(A)|_1 |x|_1 eps) (GET02), in long double.
double SolveRatio(const HostMatrix& a, int64_t n, Op op, const HostMatrix& x, const HostMatrix& b,
                  int64_t nrhs, DType dtype);

// max over columns of |x - x_true|_inf rcond / (|x_true|_inf eps) (GET04).
double ForwardRatio(const HostMatrix& x, const HostMatrix& x_true, int64_t n, int64_t nrhs,
                    double rcond, DType dtype);

// How far a reciprocal condition estimate is from the exact figure (GET06): max/min - (1 -
// min/max), 0 if both are 0, 1/eps of float64 if one is. An estimator may be off by a small factor.
double RcondRatio(double estimate, double exact);

// max over columns of the true error |x - x_true|_inf / |x|_inf over a claimed bound (GET07). At
// most 1 for a valid bound.
double ErrorOverBound(const HostMatrix& x, const HostMatrix& x_true, int64_t n, int64_t nrhs,
                      double bound);

// The design's backward error of a solve, in long double.
double BackwardError(const HostMatrix& a, int64_t n, Op op, const HostMatrix& x,
                     const HostMatrix& b, int64_t nrhs);

// LAPACK's berr of a solve, in long double: max over columns and rows of
// |b - op(A) x|_i / (|op(A)| |x| + |b|)_i, 0/0 as 0.
double ComponentwiseError(const HostMatrix& a, int64_t n, Op op, const HostMatrix& x,
                          const HostMatrix& b, int64_t nrhs);

// Norms by definition, in long double.
double NormOne(const HostMatrix& a, int64_t n);
double NormInf(const HostMatrix& a, int64_t n);

// 1 / (|A|_1 |A^-1|_1) by inversion in long double with complete pivoting; 0 if A is singular.
// Cubic: for n up to a few hundred, condition numbers up to about 1e16.
double ExactRcond(const HostMatrix& a, int64_t n);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_RATIOS_H_
