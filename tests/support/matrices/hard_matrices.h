// SPDX-License-Identifier: Apache-2.0

// Small dense matrices from classes on which LU factorizations fail or lose accuracy, and a
// reference solver.
#ifndef CROUT_TESTS_SUPPORT_MATRICES_HARD_MATRICES_H_
#define CROUT_TESTS_SUPPORT_MATRICES_HARD_MATRICES_H_

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/matrix.h"
#include "tests/support/matrices/gallery.h"

namespace crout::testing {

// Matrices of order n, or m^2 for a grid of m x m points. Foster to RandSvd are from N. J. Higham,
// "Accuracy and Stability of Numerical Algorithms".

// A Volterra integral equation, discretized by the trapezoidal rule. Growth with partial pivoting
// is of order 2^n.
HostMatrix Foster(int64_t n);
// A boundary value problem, discretized by multiple shooting. n must be even. The condition number
// is below 100. Growth with partial pivoting is e^(n / 8); at n = 400 a pivot is zero.
HostMatrix Wright(int64_t n);
// The Hilbert matrix with a first row of ones.
HostMatrix Lotkin(int64_t n);
// Powers of n points from 0.1 to 1.
HostMatrix Vandermonde(int64_t n);
// Values of Chebyshev polynomials at n points.
HostMatrix ChebyshevVandermonde(int64_t n);
// Random singular vectors and singular values from 1 to 1 / condition. `mode` distributes the
// singular values as in randsvd of MATLAB: one large (1), one small (2), geometric (3), arithmetic
// (4), random (5).
HostMatrix RandSvd(int64_t n, double condition, int mode);
// [scale H, B'; B, 0] of order n. H has order 2n/3 and is positive definite.
HostMatrix SaddlePoint(int64_t n, double scale);
// The Laplacian of a grid of m x m points with Neumann boundary conditions, plus `shift` on the
// diagonal. The Laplacian alone is singular: its null space consists of the constant vectors.
HostMatrix Neumann(int64_t m, double shift);
// Couples neighbours in a grid of m x m points by -1 to the right and down, and by -`sign` to the
// left and up. With a small `diagonal`, sign 1 gives Helmholtz's equation and sign -1 a matrix that
// is nearly skew-symmetric.
HostMatrix NearZeroDiagonal(int64_t m, double diagonal, double sign);
// `width` random diagonals on each side of a main diagonal of 1e-9.
HostMatrix BandedWithoutDiagonal(int64_t n, int64_t width);
// A well-conditioned upper triangular matrix with its rows and columns permuted at random.
HostMatrix PermutedTriangle(int64_t n);

struct HardMatrix {
  std::string name;
  int64_t n = 0;
  ComplexMatrix a;  // n x n, as returned by Turned
};

// All classes, with orders up to 64.
std::vector<HardMatrix> HardMatrices(DType dtype);
// Rounds the n x n matrix to the precision of `dtype`. For a complex type, also multiplies each
// element by a power of i, which preserves the moduli.
ComplexMatrix Turned(const HostMatrix& a, int64_t n, DType dtype);

// Factors a nonsingular matrix by elimination with complete pivoting in long double, and solves
// with it.
class DenseOracle {
 public:
  DenseOracle(const ComplexMatrix& a, int64_t n);  // n x n

  // `b` and the solution have n elements.
  ComplexMatrix Solve(const ComplexMatrix& b) const;
  double rcond() const { return rcond_; }  // in the 1-norm
  // The determinant is det_sign() * exp(det_log_abs()); |det_sign()| is 1.
  std::complex<double> det_sign() const { return std::complex<double>(det_sign_); }
  double det_log_abs() const { return static_cast<double>(det_log_abs_); }

 private:
  using Long = std::complex<long double>;

  std::vector<Long> Substituted(std::vector<Long> x) const;

  const int64_t n_;
  std::vector<Long> lu_;
  std::vector<int64_t> row_, column_;  // A[row_, column_] = L U
  Long det_sign_ = 1;
  long double det_log_abs_ = 0;
  double rcond_ = 0;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MATRICES_HARD_MATRICES_H_
