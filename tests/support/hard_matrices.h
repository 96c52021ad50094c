// Small dense matrices of the classes on which LU factorizations go wrong, and an oracle for them.
#ifndef CROUT_TESTS_SUPPORT_HARD_MATRICES_H_
#define CROUT_TESTS_SUPPORT_HARD_MATRICES_H_

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/matrix.h"
#include "tests/support/gallery.h"

namespace crout::testing {

// N. J. Higham, "Accuracy and Stability of Numerical Algorithms", has the first six.

// Foster's: a Volterra equation by the trapezoid rule; partial pivoting lets entries grow as 2^n.
HostMatrix Foster(int64_t n);
// Wright's, n even: a boundary value problem by multiple shooting. Its condition number is below
// 100, and partial pivoting lets entries grow by e^(n / 8): at n = 400 a pivot is zero.
HostMatrix Wright(int64_t n);
// Hilbert's, with a first row of ones.
HostMatrix Lotkin(int64_t n);
HostMatrix Vandermonde(int64_t n);
HostMatrix ChebyshevVandermonde(int64_t n);
// Singular values by the modes 1 to 5 of MATLAB's and LAPACK's randsvd, from 1 to 1 / condition:
// one large, one small, geometric, arithmetic, random.
HostMatrix RandSvd(int64_t n, double condition, int mode);
// [H B'; B 0] of n unknowns, two thirds of which H has; H, positive definite, times `scale`.
HostMatrix SaddlePoint(int64_t n, double scale);
// The Laplacian of a grid of m x m points with Neumann boundaries, whose null space is the
// constants, plus `shift`.
HostMatrix Neumann(int64_t m, double shift);
// Couples the neighbours of a grid of m x m points by -1 to the right and down, and by -`sign` to
// the left and up: Helmholtz's equation (1) or a skew matrix (-1) with this diagonal.
HostMatrix NearZeroDiagonal(int64_t m, double diagonal, double sign);
HostMatrix BandedWithoutDiagonal(int64_t n, int64_t width);
HostMatrix PermutedTriangle(int64_t n);

struct HardMatrix {
  std::string name;
  int64_t n = 0;
  // Rounded to the type. Of a complex one, rows and columns are those of the real matrix times
  // powers of i: moduli, and with them growth, stay what they are.
  ComplexMatrix a;
};

// Of all classes, with orders up to 64.
std::vector<HardMatrix> HardMatrices(DType dtype);
ComplexMatrix Turned(const HostMatrix& a, int64_t n, DType dtype);

// Of a regular matrix, by elimination with complete pivoting in long double.
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
