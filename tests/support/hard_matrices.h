// SPDX-License-Identifier: Apache-2.0

// Small dense matrices from classes on which LU factorizations fail or lose accuracy, and a
// reference solver.
#ifndef CROUT_TESTS_SUPPORT_HARD_MATRICES_H_
#define CROUT_TESTS_SUPPORT_HARD_MATRICES_H_

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/matrix.h"
#include "tests/support/gallery.h"

namespace crout::testing {

// The first six are from N. J. Higham, "Accuracy and Stability of Numerical Algorithms".

// Foster's matrix: a Volterra equation by the trapezoid rule. Growth with partial pivoting is of
// order 2^n.
HostMatrix Foster(int64_t n);
// Wright's matrix, n even: a boundary value problem by multiple shooting. The condition number is
// below 100. Growth with partial pivoting is e^(n / 8); at n = 400 a pivot is zero.
HostMatrix Wright(int64_t n);
// The Hilbert matrix with a first row of ones.
HostMatrix Lotkin(int64_t n);
HostMatrix Vandermonde(int64_t n);
HostMatrix ChebyshevVandermonde(int64_t n);
// Singular values from 1 to 1 / condition by the modes 1 to 5 of randsvd in MATLAB and LAPACK: one
// large, one small, geometric, arithmetic, random.
HostMatrix RandSvd(int64_t n, double condition, int mode);
// [H B'; B 0] of order n. H has order 2n/3, is positive definite and is multiplied by `scale`.
HostMatrix SaddlePoint(int64_t n, double scale);
// The Laplacian of a grid of m x m points with Neumann boundaries plus `shift`. The null space of
// the Laplacian consists of the constant vectors.
HostMatrix Neumann(int64_t m, double shift);
// Couples the neighbours in a grid of m x m points: by -1 to the right and down, and by -`sign` to
// the left and up. With this diagonal, sign 1 gives Helmholtz's equation and sign -1 a skew matrix.
HostMatrix NearZeroDiagonal(int64_t m, double diagonal, double sign);
HostMatrix BandedWithoutDiagonal(int64_t n, int64_t width);
HostMatrix PermutedTriangle(int64_t n);

struct HardMatrix {
  std::string name;
  int64_t n = 0;
  // Rounded to the type. For a complex type, the rows and columns of the real matrix are multiplied
  // by powers of i, which preserves the moduli and therefore the growth.
  ComplexMatrix a;
};

// All classes, with orders up to 64.
std::vector<HardMatrix> HardMatrices(DType dtype);
ComplexMatrix Turned(const HostMatrix& a, int64_t n, DType dtype);

// Solves with a nonsingular matrix by elimination with complete pivoting in long double.
class DenseOracle {
 public:
  DenseOracle(const ComplexMatrix& a, int64_t n);

  ComplexMatrix Solve(const ComplexMatrix& b) const;
  double rcond() const { return rcond_; }  // in the 1-norm
  std::complex<double> det_sign() const { return std::complex<double>(det_sign_); }
  double det_log_abs() const { return static_cast<double>(det_log_abs_); }

 private:
  using Long = std::complex<long double>;

  std::vector<Long> Substituted(std::vector<Long> x) const;

  const int64_t n_;
  std::vector<Long> lu_;
  std::vector<int64_t> row_, column_;  // A[row, column] = L U
  Long det_sign_ = 1;
  long double det_log_abs_ = 0;
  double rcond_ = 0;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_HARD_MATRICES_H_
