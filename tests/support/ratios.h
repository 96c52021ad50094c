// SPDX-License-Identifier: Apache-2.0

// LAPACK's acceptance ratios, computed independently of the code under test. A result is accepted
// if its ratio is below kThreshold. `a` and `lu` are n x n; `x`, `x_true` and `b` are n x nrhs. All
// are column-major without padding. "eps" is the machine epsilon of `dtype`.
#ifndef CROUT_TESTS_SUPPORT_RATIOS_H_
#define CROUT_TESTS_SUPPORT_RATIOS_H_

#include <cstdint>
#include <vector>

#include "kernels/lu_algorithm.h"
#include "kernels/matrix.h"
#include "tests/support/matrices/gallery.h"

namespace crout::testing {

inline constexpr double kThreshold = 30;

// |PA - LU|_1 / (n |A|_1 eps) (GET01). `a` is the factored matrix in the precision of the
// factorization, `lu` has getrf's storage, and `ipiv` is 1-based. Returns 0 if n is 0. Returns Inf
// for NaN, and for a zero A with a nonzero LU.
template <class Scalar = double>
double FactorRatio(const std::vector<Scalar>& a, int64_t n, const std::vector<Scalar>& lu,
                   const std::vector<int64_t>& ipiv, UnitDiagonal unit_diagonal, DType dtype);

// |(PA - LU) z|_1 / (n |A|_1 eps) for a vector z of random signs, in long double. Costs O(n^2), and
// so suits orders in the thousands. Its mean over z is at least FactorRatio / sqrt(2) (Khintchine),
// and about sqrt(n) times FactorRatio if the errors in a row are independent.
template <class Scalar = double>
double ProbedFactorRatio(const std::vector<Scalar>& a, int64_t n, const std::vector<Scalar>& lu,
                         const std::vector<int64_t>& ipiv, UnitDiagonal unit_diagonal, DType dtype);

// max over columns of |b - op(A) x|_1 / (|op(A)|_1 |x|_1 eps) (GET02), in long double.
template <class Scalar = double>
double SolveRatio(const std::vector<Scalar>& a, int64_t n, Op op, const std::vector<Scalar>& x,
                  const std::vector<Scalar>& b, int64_t nrhs, DType dtype);

// max over columns of |x - x_true|_inf rcond / (|x_true|_inf eps) (GET04).
template <class Scalar = double>
double ForwardRatio(const std::vector<Scalar>& x, const std::vector<Scalar>& x_true, int64_t n,
                    int64_t nrhs, double rcond, DType dtype);

// Distance of a reciprocal condition estimate from the exact value (GET06):
// max/min - (1 - min/max). Returns 0 if both are 0, and 1/eps of float64 if only one is. Estimates
// may differ from the exact value by a small factor.
double RcondRatio(double estimate, double exact);

// max over columns of the true error |x - x_true|_inf / |x|_inf, divided by a claimed bound
// (GET07). At most 1 for a valid bound.
template <class Scalar = double>
double ErrorOverBound(const std::vector<Scalar>& x, const std::vector<Scalar>& x_true, int64_t n,
                      int64_t nrhs, double bound);

// The backward error of a solve as the service defines it, in long double: max over columns of
// |b - op(A) x|_inf / (|op(A)|_inf |x|_inf + |b|_inf).
template <class Scalar = double>
double BackwardError(const std::vector<Scalar>& a, int64_t n, Op op, const std::vector<Scalar>& x,
                     const std::vector<Scalar>& b, int64_t nrhs);

// LAPACK's componentwise backward error (berr) of a solve, in long double: max over columns and
// rows of |b - op(A) x|_i / (|op(A)| |x| + |b|)_i. 0/0 counts as 0, and |z| is Abs1 for complex z.
template <class Scalar = double>
double ComponentwiseError(const std::vector<Scalar>& a, int64_t n, Op op,
                          const std::vector<Scalar>& x, const std::vector<Scalar>& b, int64_t nrhs);

// The 1-norm and the infinity norm, summed in long double.
template <class Scalar = double>
double NormOne(const std::vector<Scalar>& a, int64_t n);
template <class Scalar = double>
double NormInf(const std::vector<Scalar>& a, int64_t n);

// 1 / (|A|_1 |A^-1|_1) by inversion in long double with complete pivoting; 0 if A is singular.
// Costs O(n^3). Suits orders up to a few hundred and condition numbers up to about 1e16.
template <class Scalar = double>
double ExactRcond(const std::vector<Scalar>& a, int64_t n);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_RATIOS_H_
