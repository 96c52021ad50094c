// SPDX-License-Identifier: Apache-2.0

// A random matrix whose elements are functions of their position. It is made in place and made
// again for checks, so that no second copy is needed.
#ifndef CROUT_TESTS_BENCH_DENSE_GENERATED_MATRIX_H_
#define CROUT_TESTS_BENCH_DENSE_GENERATED_MATRIX_H_

#include <cstdint>
#include <vector>

#include "kernels/matrix.h"

namespace crout {

// T is a host type: double, std::complex<float>, ... Each function uses all cores.
template <class T>
class GeneratedMatrix {
 public:
  explicit GeneratedMatrix(int64_t n) : n_(n) {}

  // Writes the matrix, with parts uniform in [-1, 1), to `a`.
  void Fill(const MatrixView<T>& a) const;

  // Returns |P A x - L U x|_inf / (|A|_inf |x|_inf) in float64 for a random x. `lu` holds L, with
  // the unit diagonal, and U. `ipiv` is LAPACK's.
  double FactorError(const MatrixView<T>& lu, const std::vector<int64_t>& ipiv) const;

 private:
  const int64_t n_;
};

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_DENSE_GENERATED_MATRIX_H_
