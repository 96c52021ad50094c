// SPDX-License-Identifier: Apache-2.0

// Factors of random matrices by crout_lu, compared with the matrix. T is a host type: double,
// std::complex<float>, ...
#ifndef CROUT_TESTS_GPU_CROUT_LU_FACTORED_H_
#define CROUT_TESTS_GPU_CROUT_LU_FACTORED_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/scalar.h"
#include "tests/support/matrices/gallery.h"

namespace crout::cuda {

// cuda::WideType is for the kernels' types.
template <class T>
using Wide = crout::WideType<T>;
template <class T>
using WideMatrix = std::vector<Wide<T>>;  // column-major

// Returns an m x n matrix whose elements have parts uniform in [-1, 1].
template <class T>
WideMatrix<T> Random(int64_t m, int64_t n, uint64_t seed) {
  return testing::Random<Wide<T>>(m, n, seed);
}

template <class T>
constexpr double kEpsilon = std::numeric_limits<RealPart<T>>::epsilon();

template <class T>
struct Factored {
  WideMatrix<T> lu;  // rounded to T
  std::vector<int64_t> ipiv;
  int64_t info = -1;
};

// Expects P A z = L (U z) up to a few roundoffs `epsilon` of each row's terms, for an m x n matrix.
template <class T>
void ExpectProduct(const WideMatrix<T>& a, int64_t m, int64_t n, const Factored<T>& factored,
                   double epsilon = kEpsilon<T>) {
  const int64_t columns = std::min(m, n);
  const WideMatrix<T> z = Random<T>(n, 1, 12);
  WideMatrix<T> az(m, 0.0);
  WideMatrix<T> uz(columns, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) az[i] += ToFloat64(ConvertTo<T>(a[i + j * m])) * z[j];
    for (int64_t i = 0; i <= std::min(j, columns - 1); ++i) uz[i] += factored.lu[i + j * m] * z[j];
  }
  for (int64_t k = 0; k < columns; ++k) std::swap(az[k], az[factored.ipiv[k] - 1]);
  WideMatrix<T> product(m, 0.0);
  std::vector<double> terms(m, 0.0);
  for (int64_t k = 0; k < columns; ++k) {
    product[k] += uz[k];
    for (int64_t i = k + 1; i < m; ++i) {
      product[i] += factored.lu[i + k * m] * uz[k];
      terms[i] += Modulus(factored.lu[i + k * m] * uz[k]);
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    const double all = terms[i] + Modulus(az[i]) + (i < columns ? Modulus(uz[i]) : 0);
    ASSERT_LE(Modulus(product[i] - az[i]), 50 * epsilon * all) << "row " << i;
  }
}

}  // namespace crout::cuda

#endif  // CROUT_TESTS_GPU_CROUT_LU_FACTORED_H_
